import { share } from "../../backends/wasm/parallel.as";

/** args: input, add, count */
export function add(args: usize, t: i32, n: i32): void {
  const input = <usize>load<u32>(args);
  const other = <usize>load<u32>(args, 4);
  const count = load<i32>(args, 8);
  const end = share(count, t + 1, n, 64);
  let i = share(count, t, n, 64);
  for (; i + 4 <= end; i += 4) {
    const at = (<usize>i) << 2;
    v128.store(input + at, f32x4.add(v128.load(input + at), v128.load(other + at)));
  }
  for (; i < end; i++) {
    const at = (<usize>i) << 2;
    store<f32>(input + at, load<f32>(input + at) + load<f32>(other + at));
  }
}

/** args: input, bias, rows, size */
export function addBias(args: usize, t: i32, n: i32): void {
  const input = <usize>load<u32>(args);
  const bias = <usize>load<u32>(args, 4);
  const rows = load<i32>(args, 8);
  const size = load<i32>(args, 12);
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    const x = input + ((<usize>row * size) << 2);
    for (let i = 0; i < size; i++) {
      const at = (<usize>i) << 2;
      store<f32>(x + at, load<f32>(x + at) + load<f32>(bias + at));
    }
  }
}
