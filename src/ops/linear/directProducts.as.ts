// Products straight from the codes, for the layouts whose decoding is one byte shuffle: tiles of 16 rows, tokens in
// pairs. Weights are decoded anew for every pair, but never written: the faster form for a few tokens.

import { share } from "../../backends/wasm/parallel.as";
import { addFused2 } from "./fusedPairs.as";
import { addFused, splitPairs } from "./fusedTiles.as";
import { isSplit, offsetOf, tileBytes, unitOf } from "./plan.as";
import { GROUP } from "./quantize.as";
import { storeTile } from "./tileProducts.as";

const SIDE = 16;

/**
 * args: q, scales, sums, tiles, rowScales, plan, out, tokens, rows, columns, padded, lowTiles, scratch, scratch bytes
 * per thread
 */
export function linearFieldsDirect(args: usize, t: i32, n: i32): void {
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const plan = <usize>load<u32>(args, 20);
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const padded = load<i32>(args, 40);
  const f = <usize>load<u32>(args, 48) + <usize>t * load<u32>(args, 52);
  const groups = (padded + GROUP - 1) / GROUP;
  const bytes = tileBytes(plan);
  const bandBytes = bytes * (padded / SIDE);
  let q = <usize>load<u32>(args);
  if (isSplit(plan)) {
    const split = f + (<usize>tokens << 6);
    splitPairs(q, split, tokens * padded);
    q = split;
  }
  const unit = unitOf(plan);
  const offset = -offsetOf(plan);
  const next = <usize>groups << 2;
  const end = share(rows, t + 1, n, SIDE);
  for (let row = share(rows, t, n, SIDE); row < end; row += SIDE) {
    const band = weights + <usize>(row / SIDE) * bandBytes;
    memory.fill(f, 0, <usize>tokens << 6);
    for (let token = 0; token < tokens; token += 2) {
      const a = q + <usize>token * padded;
      const sumsOut = f + (<usize>token << 6);
      for (let g = 0; g < groups; g++) {
        const first = g * GROUP;
        const tiles = min(GROUP, padded - first) / SIDE;
        const w = band + <usize>(first / SIDE) * bytes;
        const at = <usize>token * next + (<usize>g << 2);
        const start = <f32>load<i32>(sums + at) * offset;
        const scale = load<f32>(scales + at) * unit;
        if (token + 1 == tokens) {
          addFused(plan, w, a + first, tiles, start, scale, sumsOut);
          continue;
        }
        addFused2(
          plan, w, a + first, a + padded + first, tiles, start, <f32>load<i32>(sums + at + next) * offset, scale,
          load<f32>(scales + at + next) * unit, sumsOut,
        );
      }
    }
    storeTile(f, out + (<usize>row << 2), tokens, <usize>rows << 2, rowScales + (<usize>row << 2), end - row);
  }
}
