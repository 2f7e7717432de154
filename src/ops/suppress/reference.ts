import { selectChannels } from "../compensate/reference.ts";

/** out = x, its `channels` largest elements of each row of `size` zero. */
export function suppress(
  x: Float32Array,
  out: Float32Array,
  rows: number,
  size: number,
  channels: number,
): void {
  out.set(x.subarray(0, rows * size));
  for (let row = 0; row < rows; row++) {
    const values = out.subarray(row * size, (row + 1) * size);
    for (const channel of selectChannels(values, channels, { by: "magnitude" })) values[channel] = 0;
  }
}
