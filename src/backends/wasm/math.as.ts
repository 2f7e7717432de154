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

/** The lane sums of four vectors, as one. */
// @ts-ignore: decorator
@inline
export function sumLanes4(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
}

// @ts-ignore: decorator
@inline
export function maxLanes(v: v128): f32 {
  return max(
    max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

/**
 * Constants of e^x, four times each. In memory, because V8 builds a vector constant anew at each use in a loop.
 */
const EXP = memory.data<f32>(
  // prettier-ignore
  [
  88.0, 88.0, 88.0, 88.0,
  -87.3, -87.3, -87.3, -87.3,
  1.44269504, 1.44269504, 1.44269504, 1.44269504,
  -0.693359375, -0.693359375, -0.693359375, -0.693359375,
  2.12194440e-4, 2.12194440e-4, 2.12194440e-4, 2.12194440e-4,
  1.9875691500e-4, 1.9875691500e-4, 1.9875691500e-4, 1.9875691500e-4,
  1.3981999507e-3, 1.3981999507e-3, 1.3981999507e-3, 1.3981999507e-3,
  8.3334519073e-3, 8.3334519073e-3, 8.3334519073e-3, 8.3334519073e-3,
  4.1665795894e-2, 4.1665795894e-2, 4.1665795894e-2, 4.1665795894e-2,
  1.6666665459e-1, 1.6666665459e-1, 1.6666665459e-1, 1.6666665459e-1,
  5.0000001201e-1, 5.0000001201e-1, 5.0000001201e-1, 5.0000001201e-1,
  1.0, 1.0, 1.0, 1.0,
  12583039.0, 12583039.0, 12583039.0, 12583039.0,
  ],
  16,
);

/** e^x for x <= 88 to 2 ulp; Cody-Waite reduction and a degree-6 polynomial. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const clamped = f32x4.pmax(f32x4.pmin(x, v128.load(EXP)), v128.load(EXP, 16));
  const n = f32x4.nearest(f32x4.mul(clamped, v128.load(EXP, 32)));
  let r = madd(n, v128.load(EXP, 48), clamped);
  r = madd(n, v128.load(EXP, 64), r);
  let p = madd(v128.load(EXP, 80), r, v128.load(EXP, 96));
  p = madd(p, r, v128.load(EXP, 112));
  p = madd(p, r, v128.load(EXP, 128));
  p = madd(p, r, v128.load(EXP, 144));
  p = madd(p, r, v128.load(EXP, 160));
  const one = v128.load(EXP, 176);
  p = f32x4.add(madd(f32x4.mul(p, r), r, r), one);
    // n + 127 as an exponent: adding 1.5 * 2^23 leaves the integer in the low bits.
  const biased = f32x4.add(n, v128.load(EXP, 192));
  return f32x4.mul(p, i32x4.shl(biased, 23));
}

/** e^x of one number. */
// @ts-ignore: decorator
@inline
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

/** tanh to a few ulp, through e^(2x). */
// @ts-ignore: decorator
@inline
export function tanh4(x: v128): v128 {
  const limit = f32x4.splat(10);
  const clamped = f32x4.pmax(f32x4.pmin(x, limit), f32x4.neg(limit));
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

/**
 * Brings lines into the first-level cache before they are needed: these loads wait for nothing, so that dozens of them are
 * on their way at once. What they read is left in `spare`, 16 bytes, or it would not be read.
 */
export function touch(from: usize, bytes: usize, spare: usize): void {
  let any = i32x4.splat(0);
  for (const stop = from + bytes; from < stop; from += 64) any = v128.or(any, v128.load(from));
  v128.store(spare, any);
}

/** For {@link half4}: a mask, and 2^112. Load both once, outside the loop: V8 builds constants anew at each use. */
export const HALF_MASK = memory.data<u32>([0x8fffffff, 0x8fffffff, 0x8fffffff, 0x8fffffff], 16);
export const HALF_SCALE = memory.data<u32>([0x77800000, 0x77800000, 0x77800000, 0x77800000], 16);

/**
 * Four halfs at `p` to floats, subnormals included: sign and magnitude of the half, as a float's bits, are its value
 * times 2^-112. Weights are finite: infinity, which floats of 65520 and more were rounded to at load, reads as 65536.
 */
// @ts-ignore: decorator
@inline
export function half4(p: usize, mask: v128, scale: v128): v128 {
  return f32x4.mul(v128.and(i32x4.shl(v128.load16x4_s(p), 13), mask), scale);
}
