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
 * Rows of canonical codes to the tiles of products straight from codes (decodeLevels.as.ts): `width` 4, 16 rows x 8
 * codes as nibbles; 2, 16 rows x 16 codes, four a byte; 3, 8 rows x 16 codes in 48 bytes. The target must be zero.
 */
export function packDirect(codes: usize, to: usize, rows: i32, perRow: i32, width: i32): void {
  const rowBytes = <usize>((perRow * width + 7) >> 3);
  const perTile = width == 4 ? 8 : 16;
  const bytes = width == 3 ? 96 : 64;
  const bandBytes = <usize>((perRow + perTile - 1) / perTile) * bytes;
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * rowBytes;
    for (let i = 0; i < perRow; i++) {
      const bit = i * width;
      const code = (<i32>load<u16>(source + (bit >> 3)) >>> (bit & 7)) & ((1 << width) - 1);
      const tile = to + <usize>(row >> 4) * bandBytes + <usize>(i / perTile) * bytes;
      if (width == 3) placeThreeBits(tile, row & 15, i & 15, code);
      else setBits(tile + ((row & 15) << 2) + (i & 3), code << (((i % perTile) >> 2) * (width == 4 ? 4 : 2)));
    }
  }
}

function placeThreeBits(tile: usize, row: i32, column: i32, code: i32): void {
  const run = column >> 2;
  const shift = row & 4;
  const at = tile + (row >> 3) * 48 + ((row & 3) << 2) + (column & 3);
  if (run < 3) setBits(at + (run << 4), code << shift);
  else for (let bit = 0; bit < 3; bit++) setBits(at + (bit << 4), ((code >> bit) & 1) << (shift + 3));
}

// @ts-ignore: decorator
@inline
function setBits(at: usize, bits: i32): void {
  store<u8>(at, <i32>load<u8>(at) | bits);
}

/**
 * Rows of canonical codes of `width` bits to tiles of 16 x 16 in bit planes (planeProducts.as.ts), lowest bits first: in
 * 32 bytes a nibble for every row and four columns, two runs of four columns in the first 16. The target must be zero.
 */
export function packBitPlanes(codes: usize, to: usize, rows: i32, columns: i32, width: i32): void {
  const rowBytes = <usize>((columns * width + 7) >> 3);
  const bytes = <usize>width << 5;
  const bandBytes = <usize>((columns + 15) >> 4) * bytes;
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * rowBytes;
    const target = to + <usize>(row >> 4) * bandBytes + (row & 15);
    for (let i = 0; i < columns; i++) {
      const bit = i * width;
      const code = <i32>load<u16>(source + (bit >> 3)) >>> (bit & 7);
      const at = target + <usize>(i >> 4) * bytes + (<usize>((i >> 3) & 1) << 4);
      for (let plane = 0; plane < width; plane++) {
        setBits(at + (<usize>plane << 5), ((code >> plane) & 1) << (i & 7));
      }
    }
  }
}
