// The products of activations of 16 bits: those of the high bytes and of the low ones, added.

import { share } from "../../backends/wasm/parallel.as";

/**
 * args: halves [2 tokens, rows], out, tokens, rows. Threads take the output channels that they multiplied: nobody waits
 * between a product and this.
 */
export function addHalves(args: usize, t: i32, n: i32): void {
  const tokens = load<i32>(args, 8);
  const rows = load<i32>(args, 12);
  const stride = <usize>rows << 2;
  const from = share(rows, t, n, 16);
  const end = share(rows, t + 1, n, 16);
  let high = <usize>load<u32>(args);
  let out = <usize>load<u32>(args, 4);
  for (let token = 0; token < tokens; token++) {
    const low = high + stride;
    let i = from;
    for (; i + 4 <= end; i += 4) {
      const at = <usize>i << 2;
      v128.store(out + at, f32x4.add(v128.load(high + at), v128.load(low + at)));
    }
    for (; i < end; i++) {
      const at = <usize>i << 2;
      store<f32>(out + at, load<f32>(high + at) + load<f32>(low + at));
    }
    high = low + stride;
    out += stride;
  }
}
