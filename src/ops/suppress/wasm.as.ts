import { share } from "../../backends/wasm/parallel.as";
import { top } from "../compensate/select.as";

/** args: input, out, rows, size, channels, scratch, scratch bytes per thread (keys, padded to four, and a list) */
export function suppress(args: usize, t: i32, n: i32): void {
  const input = <usize>load<u32>(args);
  const out = <usize>load<u32>(args, 4);
  const rows = load<i32>(args, 8);
  const size = load<i32>(args, 12);
  const channels = load<i32>(args, 16);
  const keys = <usize>load<u32>(args, 20) + <usize>t * load<u32>(args, 24);
  const list = keys + (<usize>((size + 3) & ~3) << 2);
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    const from = input + ((<usize>row * size) << 2);
    const to = out + ((<usize>row * size) << 2);
    for (let i = 0; i < size; i++) {
      const at = <usize>i << 2;
      const word = load<u32>(from + at);
      store<u32>(to + at, word);
      store<u32>(keys + at, word & 0x7fffffff);
    }
    for (let i = size; i & 3; i++) store<u32>(keys + (<usize>i << 2), 0);
    top(keys, size, channels, 30, 0, list);
    for (let i = 0; i < channels; i++) {
      store<f32>(to + (<usize>load<u32>(list + (<usize>i << 2)) << 2), 0);
    }
  }
}
