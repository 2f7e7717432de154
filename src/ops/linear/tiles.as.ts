// How weights are packed in memory, and how one row is read back as floats.

export const FLOAT: i32 = 0;
export const HALF: i32 = 1;
/** 16 rows x 8 columns in 64 bytes, two 4-bit codes a byte. */
export const NIBBLE_TILES: i32 = 2;
/** 16 rows x 4 columns in 64 bytes, each standing for byte - 127.5. */
export const BYTE_TILES: i32 = 3;
/** 16 rows x 16 columns of any other code; see fieldTiles.as.ts. */
export const FIELD_TILES: i32 = 4;

/**
 * The low nibble of every byte, in memory: a constant would be folded into the loops, where V8 builds it anew
 * at each use; loaded once it stays in a register (1.5 times the speed).
 */
export const NIBBLE_MASK = memory.data<u8>([15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15], 16);

/** One row, `row` pointing at its first bytes in the tile. */
export function readNibbles(row: usize, out: usize, columns: i32, factor: f32, codebook: usize): void {
  for (let i = 0; i < columns; i++) {
    const byte = load<u8>(row + <usize>(i >> 3) * 64 + (i & 3));
    const code = i & 4 ? byte >> 4 : byte & 15;
    store<f32>(out + ((<usize>i) << 2), factor * <f32>(<i32>load<u8>(codebook + code) - 64));
  }
}

/** One row, `row` pointing at its first bytes in the tile. */
export function readBytes(row: usize, out: usize, columns: i32, factor: f32): void {
  for (let i = 0; i < columns; i++) {
    const byte = load<u8>(row + <usize>(i >> 2) * 64 + (i & 3));
    store<f32>(out + ((<usize>i) << 2), factor * (<f32>byte - 127.5));
  }
}
