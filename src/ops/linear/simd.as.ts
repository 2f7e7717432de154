// Instructions that relaxed SIMD has and plain SIMD builds of several.

/** c + sums of four products, per 32-bit lane; `w` within 7 bits, so that every ISA agrees. */
// @ts-ignore: decorator
@inline
export function dot(a: v128, w: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i32x4.relaxed_dot_i8x16_i7x16_add_s(a, w, c);
  const low = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_low_i8x16_s(a, w));
  const high = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_high_i8x16_s(a, w));
  const even = v128.shuffle<i32>(low, high, 0, 2, 4, 6);
  const odd = v128.shuffle<i32>(low, high, 1, 3, 5, 7);
  return i32x4.add(c, i32x4.add(even, odd));
}

/** Bytes of the table, by indices below 16. */
// @ts-ignore: decorator
@inline
export function swizzle(table: v128, index: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, index);
  return i8x16.swizzle(table, index);
}
