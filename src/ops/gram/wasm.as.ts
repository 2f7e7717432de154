// H += X^T X. The rows are first repacked as panels of eight columns, [panel][row][8]: two panels lie in the
// first-level cache whatever the width, and every load is aligned.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/** Columns of a panel. */
const PANEL: i32 = 8;

/** args: x, panels, rows, size, weights or 0. Columns past the last become zeros; rows are times their weight's root. */
export function gramPack(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const panels = <usize>load<u32>(args, 4);
  const rows = load<i32>(args, 8);
  const size = load<i32>(args, 12);
  const weights = <usize>load<u32>(args, 16);
  const count = (size + PANEL - 1) / PANEL;
  const end = share(count, t + 1, n, 1);
  for (let panel = share(count, t, n, 1); panel < end; panel++) {
    const first = panel * PANEL;
    const width = min(PANEL, size - first);
    let to = panels + <usize>panel * rows * PANEL * 4;
    for (let row = 0; row < rows; row++, to += PANEL * 4) {
      const from = x + ((<usize>row * size + first) << 2);
      const root: f32 = weights ? sqrt<f32>(load<f32>(weights + (<usize>row << 2))) : 1;
      if (width == PANEL) {
        const roots = f32x4.splat(root);
        v128.store(to, f32x4.mul(v128.load(from), roots));
        v128.store(to, f32x4.mul(v128.load(from, 16), roots), 16);
      } else {
        for (let i = 0; i < PANEL; i++) {
          store<f32>(to + (<usize>i << 2), i < width ? root * load<f32>(from + (<usize>i << 2)) : 0);
        }
      }
    }
  }
}

/** args: panels, sums, rows, size. Panels are dealt out and back, so that threads get equal parts of the triangle. */
export function gram(args: usize, t: i32, n: i32): void {
  const panels = <usize>load<u32>(args);
  const sums = <usize>load<u32>(args, 4);
  const rows = load<i32>(args, 8);
  const size = load<i32>(args, 12);
  const count = (size + PANEL - 1) / PANEL;
  const stride = <usize>rows * PANEL * 4;
  for (let i = 0; i < count; i++) {
    const turn = i % (2 * n);
    if (turn != t && turn != 2 * n - 1 - t) continue;
    for (let j = i; j < count; j++) {
      const height = min(PANEL, size - i * PANEL);
      const width = min(PANEL, size - j * PANEL);
      for (let half = 0; half < height; half += 4) {
        const to = sums + ((<usize>(i * PANEL + half) * size + j * PANEL) << 2);
        fourByEight(
          panels + <usize>i * stride + (<usize>half << 2), panels + <usize>j * stride, to,
          rows, min(4, height - half), width, <usize>size << 2, i == j ? half : -PANEL,
        );
      }
    }
  }
}

/** Adds four columns by eight; `diagonal` is the first of the four among the eight where the two meet. */
function fourByEight(
  a: usize, b: usize, to: usize, rows: i32, height: i32, width: i32, stride: usize, diagonal: i32,
): void {
  let s00 = f32x4.splat(0);
  let s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
  for (let row = 0; row < rows; row++, a += PANEL * 4, b += PANEL * 4) {
    const b0 = v128.load(b);
    const b1 = v128.load(b, 16);
    let v = v128.load32_splat(a);
    s00 = madd(v, b0, s00);
    s01 = madd(v, b1, s01);
    v = v128.load32_splat(a, 4);
    s10 = madd(v, b0, s10);
    s11 = madd(v, b1, s11);
    v = v128.load32_splat(a, 8);
    s20 = madd(v, b0, s20);
    s21 = madd(v, b1, s21);
    v = v128.load32_splat(a, 12);
    s30 = madd(v, b0, s30);
    s31 = madd(v, b1, s31);
  }
  addRow(to, s00, s01, width, diagonal);
  if (height > 1) addRow(to + stride, s10, s11, width, diagonal + 1);
  if (height > 2) addRow(to + stride * 2, s20, s21, width, diagonal + 2);
  if (height > 3) addRow(to + stride * 3, s30, s31, width, diagonal + 3);
}

/** to[from, width) += (low, high). */
function addRow(to: usize, low: v128, high: v128, width: i32, from: i32): void {
  if (width == PANEL && from <= 0) {
    v128.store(to, f32x4.add(v128.load(to), low));
    v128.store(to, f32x4.add(v128.load(to, 16), high), 16);
    return;
  }
  for (let i = max(0, from); i < width; i++) {
    const value = i < 4 ? lane(low, i) : lane(high, i - 4);
    const at = to + (<usize>i << 2);
    store<f32>(at, load<f32>(at) + value);
  }
}

function lane(v: v128, i: i32): f32 {
  if (i == 0) return f32x4.extract_lane(v, 0);
  if (i == 1) return f32x4.extract_lane(v, 1);
  if (i == 2) return f32x4.extract_lane(v, 2);
  return f32x4.extract_lane(v, 3);
}
