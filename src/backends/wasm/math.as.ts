// Vector helpers shared by the kernels. Relaxed SIMD where the build has it.

// @ts-ignore: decorator
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return (
    f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3))
  );
}

// @ts-ignore: decorator
@inline
export function maxLanes(v: v128): f32 {
  return max(
    max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

/** e^x for x <= 88 to 2 ulp; Cody-Waite reduction and a degree-6 polynomial. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const clamped = f32x4.max(f32x4.min(x, f32x4.splat(88.0)), f32x4.splat(-87.3));
  const n = f32x4.nearest(f32x4.mul(clamped, f32x4.splat(1.44269504)));
  let r = f32x4.sub(clamped, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = madd(p, r, f32x4.splat(1.3981999507e-3));
  p = madd(p, r, f32x4.splat(8.3334519073e-3));
  p = madd(p, r, f32x4.splat(4.1665795894e-2));
  p = madd(p, r, f32x4.splat(1.6666665459e-1));
  p = madd(p, r, f32x4.splat(5.0000001201e-1));
  p = f32x4.add(madd(f32x4.mul(p, r), r, r), f32x4.splat(1));
  return f32x4.mul(p, i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23));
}

/** tanh to a few ulp, through e^(2x). */
// @ts-ignore: decorator
@inline
export function tanh4(x: v128): v128 {
  const limit = f32x4.splat(10);
  const clamped = f32x4.max(f32x4.min(x, limit), f32x4.neg(limit));
  const square = f32x4.mul(clamped, clamped);
  const e = exp4(f32x4.add(clamped, clamped));
  const one = f32x4.splat(1);
  const far = f32x4.div(f32x4.sub(e, one), f32x4.add(e, one));
  // Near zero the quotient cancels; the odd series does not.
  let series = madd(square, f32x4.splat(-0.05396825), f32x4.splat(0.13333333));
  series = madd(square, series, f32x4.splat(-0.33333333));
  const near = madd(f32x4.mul(clamped, square), series, clamped);
  return v128.bitselect(near, far, f32x4.lt(square, f32x4.splat(0.04)));
}

/** Four halfs (16 bits each, widened to 32) at `p` to floats, subnormals included. */
// @ts-ignore: decorator
@inline
export function half4(p: usize): v128 {
  const h = v128.load16x4_u(p);
  const sign = i32x4.shl(v128.and(h, i32x4.splat(0x8000)), 16);
  const magnitude = i32x4.shl(v128.and(h, i32x4.splat(0x7fff)), 13);
  return v128.or(sign, f32x4.mul(magnitude, f32x4.splat(reinterpret<f32>(0x77800000))));
}
