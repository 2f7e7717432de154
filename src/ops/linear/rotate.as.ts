import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/**
 * Orthonormal rotation of every row of x to out (which may be x): signs, then on each block the Walsh-Hadamard
 * transform of runs of `run` = 2^k elements and the bases, innermost first. Inverse: transposed bases, signs last.
 * args: x, out, rows, size, signs (scaled floats), block, run, bases, count, inverse, scratch, scratch bytes per thread.
 * bases: `count` pairs of order and address of a row-major float +-1 matrix.
 */
export function rotate(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const out = <usize>load<u32>(args, 4);
  const rows = load<i32>(args, 8);
  const size = load<i32>(args, 12);
  const signs = <usize>load<u32>(args, 16);
  const block = load<i32>(args, 20);
  const run = load<i32>(args, 24);
  const bases = <usize>load<u32>(args, 28);
  const count = load<i32>(args, 32);
  const inverse = load<i32>(args, 36);
  const scratch = <usize>load<u32>(args, 40) + <usize>t * load<u32>(args, 44);
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    const offset = (<usize>row * size) << 2;
    const at = out + offset;
    if (!inverse) multiply(x + offset, signs, at, size);
    else if (x != out) memory.copy(at, x + offset, (<usize>size) << 2);
    for (let start = 0; start < size; start += block) {
      const piece = at + ((<usize>start) << 2);
      for (let i = 0; i < block; i += run) walshHadamard(piece + ((<usize>i) << 2), run);
      let stride = run;
      for (let b = 0; b < count; b++) {
        const order = load<i32>(bases + ((<usize>b) << 3));
        const base = <usize>load<u32>(bases + ((<usize>b) << 3), 4);
        for (let i = 0; i < block; i += order * stride) {
          multiplyBase(piece + ((<usize>i) << 2), base, order, stride, scratch);
        }
        stride *= order;
      }
    }
    if (inverse) multiply(at, signs, at, size);
  }
}

function multiply(x: usize, y: usize, out: usize, size: i32): void {
  let i = 0;
  for (; i + 4 <= size; i += 4) {
    const at = (<usize>i) << 2;
    v128.store(out + at, f32x4.mul(v128.load(x + at), v128.load(y + at)));
  }
  for (; i < size; i++) {
    const at = (<usize>i) << 2;
    store<f32>(out + at, load<f32>(x + at) * load<f32>(y + at));
  }
}

function walshHadamard(x: usize, size: i32): void {
  let span = 1;
  if (size >= 4) {
    // The first two stages stay inside a vector.
    for (let i = 0; i < size; i += 4) {
      const at = x + ((<usize>i) << 2);
      let v = v128.load(at);
      let swapped = v128.shuffle<f32>(v, v, 1, 0, 3, 2);
      v = f32x4.add(f32x4.mul(v, f32x4(1, -1, 1, -1)), swapped);
      swapped = v128.shuffle<f32>(v, v, 2, 3, 0, 1);
      v = f32x4.add(f32x4.mul(v, f32x4(1, 1, -1, -1)), swapped);
      v128.store(at, v);
    }
    span = 4;
  }
  for (; span < size; span <<= 1) {
    const far = (<usize>span) << 2;
    for (let start = 0; start < size; start += span << 1) {
      let at = x + ((<usize>start) << 2);
      if (span >= 4) {
        for (const stop = at + far; at < stop; at += 16) {
          const a = v128.load(at);
          const b = v128.load(at + far);
          v128.store(at, f32x4.add(a, b));
          v128.store(at + far, f32x4.sub(a, b));
        }
      } else {
        for (const stop = at + far; at < stop; at += 4) {
          const a = load<f32>(at);
          const b = load<f32>(at + far);
          store<f32>(at, a + b);
          store<f32>(at + far, a - b);
        }
      }
    }
  }
}

/** x[i][:] = sum over j of base[i][j] * x[j][:], runs of `run` elements; two i at a time share the loads. */
function multiplyBase(x: usize, base: usize, order: i32, run: i32, scratch: usize): void {
  const bytes = <usize>run << 2;
  memory.copy(scratch, x, bytes * order);
  for (let i = 0; i < order; i += 2) {
    const first = base + (<usize>(i * order) << 2);
    const second = first + (<usize>order << 2);
    const out = x + <usize>i * bytes;
    let k = 0;
    for (; k + 16 <= run; k += 16) {
      let from = scratch + (<usize>k << 2);
      let a = f32x4.splat(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
      for (let j = 0; j < order; j++) {
        const p = v128.load32_splat(first + (<usize>j << 2));
        const q = v128.load32_splat(second + (<usize>j << 2));
        let v = v128.load(from);
        a = madd(p, v, a);
        e = madd(q, v, e);
        v = v128.load(from, 16);
        b = madd(p, v, b);
        f = madd(q, v, f);
        v = v128.load(from, 32);
        c = madd(p, v, c);
        g = madd(q, v, g);
        v = v128.load(from, 48);
        d = madd(p, v, d);
        h = madd(q, v, h);
        from += bytes;
      }
      const to = out + (<usize>k << 2);
      v128.store(to, a);
      v128.store(to, b, 16);
      v128.store(to, c, 32);
      v128.store(to, d, 48);
      v128.store(to + bytes, e);
      v128.store(to + bytes, f, 16);
      v128.store(to + bytes, g, 32);
      v128.store(to + bytes, h, 48);
    }
    for (; k + 4 <= run; k += 4) {
      let from = scratch + (<usize>k << 2);
      let a = f32x4.splat(0), e = a;
      for (let j = 0; j < order; j++) {
        const v = v128.load(from);
        a = madd(v128.load32_splat(first + (<usize>j << 2)), v, a);
        e = madd(v128.load32_splat(second + (<usize>j << 2)), v, e);
        from += bytes;
      }
      v128.store(out + (<usize>k << 2), a);
      v128.store(out + bytes + (<usize>k << 2), e);
    }
    for (; k < run; k++) {
      let sum: f32 = 0;
      let other: f32 = 0;
      for (let j = 0; j < order; j++) {
        const value = load<f32>(scratch + <usize>j * bytes + (<usize>k << 2));
        sum += load<f32>(first + (<usize>j << 2)) * value;
        other += load<f32>(second + (<usize>j << 2)) * value;
      }
      store<f32>(out + (<usize>k << 2), sum);
      store<f32>(out + bytes + (<usize>k << 2), other);
    }
  }
}
