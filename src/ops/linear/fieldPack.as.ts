/**
 * Rows of canonical codes, `perRow` codes of `width` bits each, to tiles of fields of `k` bits (a multiple of the
 * width: two scalars, or one point for two columns); see fieldTiles.as.ts. The target must be zero.
 */
export function packFields(codes: usize, to: usize, rows: i32, perRow: i32, width: i32, k: i32): void {
  const rowBytes = <usize>((perRow * width + 7) >> 3);
  const perField = k / width;
  const fields = (perRow + perField - 1) / perField;
  const bandBytes = <usize>((fields + 7) >> 3) * 16 * k;
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * rowBytes;
    const target = to + <usize>(row >> 4) * bandBytes;
    for (let i = 0; i < fields; i++) {
      const bit = i * k;
      const bits = min(k, perRow * width - bit);
      const field = (load<u32>(source + (bit >> 3)) >>> (bit & 7)) & ((1 << bits) - 1);
      const place = (i * 16 + (row & 15)) * k;
      const at = target + (place >> 3);
      store<u32>(at, load<u32>(at) | (field << (place & 7)));
    }
  }
}

/**
 * Rows of canonical codes to the tiles of products straight from codes: `width` 4, 16 rows x 8 codes as nibbles; 2 or
 * 3, 16 rows x 16 codes as two bits and the third bits apart. The target must be zero.
 */
export function packPlanes(codes: usize, to: usize, rows: i32, perRow: i32, width: i32): void {
  const rowBytes = <usize>((perRow * width + 7) >> 3);
  const perTile = width == 4 ? 8 : 16;
  const bytes = width == 3 ? 96 : 64;
  const bandBytes = <usize>((perRow + perTile - 1) / perTile) * bytes;
  const shift = min(width, 2) << (width == 4 ? 1 : 0);
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * rowBytes;
    const lane = row & 15;
    for (let i = 0; i < perRow; i++) {
      const bit = i * width;
      const code = (<i32>load<u16>(source + (bit >> 3)) >>> (bit & 7)) & ((1 << width) - 1);
      const tile = to + <usize>(row >> 4) * bandBytes + <usize>(i / perTile) * bytes;
      const run = (i % perTile) >> 2;
      const at = tile + (lane << 2) + (i & 3);
      store<u8>(at, <i32>load<u8>(at) | ((width == 3 ? code & 3 : code) << (run * shift)));
      if (width == 3) {
        const plane = tile + 64 + ((lane >> 3) << 4) + ((lane & 3) << 2) + (i & 3);
        store<u8>(plane, <i32>load<u8>(plane) | ((code >> 2) << (run + (lane & 4))));
      }
    }
  }
}
