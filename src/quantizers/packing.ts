/**
 * The canonical layout of scalar and vector codes: one row of codes per output channel, each row starting
 * on a byte boundary, codes of `bits` bits laid end to end from the least significant bit of its first byte.
 *
 * @module
 */

/** Bytes of a row of `count` codes of `bits` bits. */
export function packedRowBytes(count: number, bits: number): number {
  return Math.ceil((count * bits) / 8);
}

/**
 * Packs codes of 1 to 16 bits into `target` from bit `start` of byte `offset`. Bits are OR-ed in:
 * the target's bits must be zero. Codes must be below 2^bits.
 */
export function packCodes(
  codes: ArrayLike<number>,
  bits: number,
  target: Uint8Array,
  offset = 0,
  start = 0,
  count: number = codes.length,
): void {
  let place = offset + (start >>> 3);
  let filled = start & 7;
  let buffer = target[place];
  if (filled === 0 && bits === 8) {
    for (let i = 0; i < count; i++) target[place + i] = codes[i];
    return;
  }
  for (let i = 0; i < count; i++) {
    buffer |= codes[i] << filled;
    filled += bits;
    while (filled >= 8) {
      target[place++] = buffer;
      buffer >>>= 8;
      filled -= 8;
    }
  }
  if (filled > 0) target[place] |= buffer;
}

/**
 * Unpacks `count` codes of 1 to 16 bits from bit `start` of byte `offset` of `source` into `codes`.
 * The inverse of {@link packCodes}.
 */
export function unpackCodes(
  source: Uint8Array,
  bits: number,
  codes: Uint8Array | Uint16Array,
  offset = 0,
  start = 0,
  count: number = codes.length,
): void {
  let place = offset + (start >>> 3);
  const skipped = start & 7;
  if (skipped === 0 && bits === 8) {
    for (let i = 0; i < count; i++) codes[i] = source[place + i];
    return;
  }
  if (count === 0) return;
  const mask = (1 << bits) - 1;
  let buffer = source[place++] >>> skipped;
  let filled = 8 - skipped;
  for (let i = 0; i < count; i++) {
    while (filled < bits) {
      buffer |= source[place++] << filled;
      filled += 8;
    }
    codes[i] = buffer & mask;
    buffer >>>= bits;
    filled -= bits;
  }
}
