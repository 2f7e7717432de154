import { madd, sumLanes } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/** args: input, add (0 for none), weight, out, rows, size, epsilon */
export function rmsNorm(args: usize, t: i32, n: i32): void {
  const input = <usize>load<u32>(args);
  const add = <usize>load<u32>(args, 4);
  const weight = <usize>load<u32>(args, 8);
  const out = <usize>load<u32>(args, 12);
  const rows = load<i32>(args, 16);
  const size = load<i32>(args, 20);
  const epsilon = load<f32>(args, 24);
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    const offset = (<usize>row * size) << 2;
    normRow(input + offset, add ? add + offset : 0, weight, out + offset, size, epsilon);
  }
}

function normRow(x: usize, add: usize, weight: usize, out: usize, size: i32, epsilon: f32): void {
  const vectors = size & ~3;
  let squares = f32x4.splat(0);
  let tail: f32 = 0;
  for (let i = 0; i < vectors; i += 4) {
    const at = (<usize>i) << 2;
    let v = v128.load(x + at);
    if (add) {
      v = f32x4.add(v, v128.load(add + at));
      v128.store(x + at, v);
    }
    squares = madd(v, v, squares);
  }
  for (let i = vectors; i < size; i++) {
    const at = (<usize>i) << 2;
    let v = load<f32>(x + at);
    if (add) {
      v += load<f32>(add + at);
      store<f32>(x + at, v);
    }
    tail += v * v;
  }
  const scale: f32 = 1 / sqrt<f32>((sumLanes(squares) + tail) / <f32>size + epsilon);
  const scales = f32x4.splat(scale);
  for (let i = 0; i < vectors; i += 4) {
    const at = (<usize>i) << 2;
    v128.store(out + at, f32x4.mul(f32x4.mul(v128.load(x + at), scales), v128.load(weight + at)));
  }
  for (let i = vectors; i < size; i++) {
    const at = (<usize>i) << 2;
    store<f32>(out + at, load<f32>(x + at) * scale * load<f32>(weight + at));
  }
}
