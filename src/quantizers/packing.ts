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
): void {
  const count = codes.length;
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

/** Unpacks codes of 1 to 16 bits from byte `offset` of `source` on, as many as `codes` holds. */
export function unpackCodes(
  source: Uint8Array,
  bits: number,
  codes: Uint8Array | Uint16Array,
  offset = 0,
): void {
  const count = codes.length;
  if (bits === 8) {
    for (let i = 0; i < count; i++) codes[i] = source[offset + i];
    return;
  }
  const mask = (1 << bits) - 1;
  let place = offset;
  let buffer = 0;
  let filled = 0;
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
