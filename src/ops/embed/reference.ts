/** out [rows, columns] = table[ids] * scale */
export function embed(
  table: Float32Array,
  ids: Int32Array,
  out: Float32Array,
  rows: number,
  columns: number,
  scale: number,
): void {
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < columns; i++) out[row * columns + i] = table[ids[row] * columns + i] * scale;
  }
}
