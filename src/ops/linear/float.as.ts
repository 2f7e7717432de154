// Products with float weights, row-major [rows, columns].

import { HALF_MASK, HALF_SCALE, half4 } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import { addPanel, BLOCK, PANEL_BYTES, PANEL_ROWS, PANEL_STRIDE } from "./floatTile.as";
import { storeTile } from "./tileProducts.as";

/** Floats or, where `H` is u16, halfs. args: x, weights, out, tokens, rows, columns, scratch, scratch bytes per thread */
// @ts-ignore: decorator
@inline
function linearFloat<H>(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const weights = <usize>load<u32>(args, 4);
  const out = <usize>load<u32>(args, 8);
  const tokens = load<i32>(args, 12);
  const rows = load<i32>(args, 16);
  const columns = load<i32>(args, 20);
  const panel = <usize>load<u32>(args, 24) + <usize>t * load<u32>(args, 28);
  const f = panel + PANEL_BYTES;
  const size: usize = isInteger<H>() ? 2 : 4;
  const stride = <usize>columns * size;
  const end = share(rows, t + 1, n, PANEL_ROWS);
  for (let row = share(rows, t, n, PANEL_ROWS); row < end; row += PANEL_ROWS) {
    const count = min(PANEL_ROWS, end - row);
    memory.fill(f, 0, <usize>tokens << 6);
    const band = weights + <usize>row * stride;
    for (let first = 0; first < columns; first += BLOCK) {
      const width = min(BLOCK, columns - first);
      const from = band + <usize>first * size;
      const input = x + (<usize>first << 2);
      if (!isInteger<H>() && count == PANEL_ROWS) {
        addPanel(input, <usize>columns << 2, tokens, from, stride, width, f);
        continue;
      }
      for (let k = 0; k < PANEL_ROWS; k++) {
        // Rows past the last repeat it; nobody reads their sums.
        const source = from + <usize>min(k, count - 1) * stride;
        if (isInteger<H>()) widen(source, panel + <usize>k * PANEL_STRIDE, width);
        else memory.copy(panel + <usize>k * PANEL_STRIDE, source, <usize>width << 2);
      }
      addPanel(input, <usize>columns << 2, tokens, panel, PANEL_STRIDE, width, f);
    }
    storeTile(f, out + (<usize>row << 2), tokens, <usize>rows << 2, 0, count);
  }
}

export function linearF32(args: usize, t: i32, n: i32): void {
  linearFloat<f32>(args, t, n);
}

export function linearF16(args: usize, t: i32, n: i32): void {
  linearFloat<u16>(args, t, n);
}

/** `count` halfs to floats. */
export function widen(from: usize, to: usize, count: i32): void {
  const mask = v128.load(HALF_MASK);
  const scale = v128.load(HALF_SCALE);
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(to + (<usize>i << 2), half4(from + (<usize>i << 1), mask, scale));
  for (; i < count; i++) store<f32>(to + (<usize>i << 2), halfAt(from + (<usize>i << 1)));
}

function halfAt(p: usize): f32 {
  const h = <u32>load<u16>(p);
  const magnitude = reinterpret<f32>((h & 0x7fff) << 13) * reinterpret<f32>(0x77800000);
  return h & 0x8000 ? -magnitude : magnitude;
}
