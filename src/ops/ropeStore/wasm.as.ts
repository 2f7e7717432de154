import { share } from "../../backends/wasm/parallel.as";
import { F32, headBytesOf, storeHead } from "../attention/cacheRows.as";

/** Rotates one head, halves apart by `half` elements, from `x` to `out`; the rest is copied. */
function rotateHead(x: usize, out: usize, rope: usize, half: i32, headSize: i32): void {
  const far = (<usize>half) << 2;
  let i = 0;
  for (; i + 4 <= half; i += 4) {
    const at = (<usize>i) << 2;
    const cos = v128.load(rope + at);
    const sin = v128.load(rope + far + at);
    const a = v128.load(x + at);
    const b = v128.load(x + far + at);
    v128.store(out + at, f32x4.sub(f32x4.mul(a, cos), f32x4.mul(b, sin)));
    v128.store(out + far + at, f32x4.add(f32x4.mul(b, cos), f32x4.mul(a, sin)));
  }
  for (; i < half; i++) {
    const at = (<usize>i) << 2;
    const cos = load<f32>(rope + at);
    const sin = load<f32>(rope + far + at);
    const a = load<f32>(x + at);
    const b = load<f32>(x + far + at);
    store<f32>(out + at, a * cos - b * sin);
    store<f32>(out + far + at, b * cos + a * sin);
  }
  const rest = (<usize>(half << 1)) << 2;
  if (x != out) memory.copy(out + rest, x + rest, ((<usize>headSize) << 2) - rest);
}

/**
 * args: q, k, v, rope (0 for none), half, keys, values, capacity, positions, sequences, rows, heads, kvHeads, headSize,
 * type
 */
export function ropeStore(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const k = <usize>load<u32>(args, 4);
  const v = <usize>load<u32>(args, 8);
  const rope = <usize>load<u32>(args, 12);
  const half = load<i32>(args, 16);
  const keys = <usize>load<u32>(args, 20);
  const values = <usize>load<u32>(args, 24);
  const capacity = load<i32>(args, 28);
  const positions = <usize>load<u32>(args, 32);
  const sequences = <usize>load<u32>(args, 36);
  const rows = load<i32>(args, 40);
  const heads = load<i32>(args, 44);
  const kvHeads = load<i32>(args, 48);
  const headSize = load<i32>(args, 52);

  const type = load<i32>(args, 56);

  const rowBytes = <usize>headSize << 2;
  const headBytes = headBytesOf(type, headSize);
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    const word = <usize>row << 2;
    const sequence = load<i32>(sequences + word);
    const position = load<i32>(positions + word);
    const table = rope + (<usize>(row * half * 2) << 2);
    if (rope) {
      let query = q + <usize>(row * heads) * rowBytes;
      for (let h = 0; h < heads; h++, query += rowBytes) rotateHead(query, query, table, half, headSize);
    }
    for (let h = 0; h < kvHeads; h++) {
      const key = k + <usize>(row * kvHeads + h) * rowBytes;
      const to = <usize>((sequence * kvHeads + h) * capacity + position) * headBytes;
      if (rope) rotateHead(key, type == F32 ? keys + to : key, table, half, headSize);
      if (!rope || type != F32) storeHead(type, key, keys + to, headSize);
      storeHead(type, v + <usize>(row * kvHeads + h) * rowBytes, values + to, headSize);
    }
  }
}
