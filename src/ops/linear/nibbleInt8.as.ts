// Products of 4-bit codes with int8 activations, tiles of 16 rows, decoded to a first-level cache's worth of bytes
// once for all tokens; tileProducts.as.ts says why the batch never matters.

import { share } from "../../backends/wasm/parallel.as";
import { GROUP } from "./quantize.as";
import { swizzle } from "./simd.as";
import { NIBBLE_MASK } from "./tiles.as";
import { addTokens, storeTile } from "./tileProducts.as";

/** args: q, scales, sums, weights, rowScales, codebook, out, tokens, rows, columns, padded, scratch, scratch bytes per thread */
export function linearNibbleInt8(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const codebook = v128.load(<usize>load<u32>(args, 20));
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const padded = load<i32>(args, 40);
  const scratch = <usize>load<u32>(args, 44) + <usize>t * load<u32>(args, 48);

  const groups = (padded + GROUP - 1) / GROUP;
  const tileBytes = <usize>padded * 8;
  const end = share(rows, t + 1, n, 16);
  for (let row = share(rows, t, n, 16); row < end; row += 16) {
    const w = weights + <usize>(row >> 4) * tileBytes;
    const target = out + (<usize>row << 2);
    const tileScales = rowScales + (<usize>row << 2);
    const decoded = scratch + (<usize>tokens << 6);
    memory.fill(scratch, 0, <usize>tokens << 6);
    for (let g = 0; g < groups; g++) {
      const columns = min(GROUP, padded - g * GROUP);
      decodeNibbles(w + <usize>(g * GROUP) * 8, decoded, columns >> 3, codebook);
      const at = <usize>g << 2;
      addTokens(
        decoded, q + g * GROUP, padded, columns, scales + at, sums + at, groups, tokens, true, 1, 64, scratch,
      );
    }
    storeTile(scratch, target, tokens, <usize>rows << 2, tileScales, end - row);
  }
}

/** Decodes `chunks` x 64 bytes of a nibble tile: 128 bytes each, four columns of all 16 rows, then the next four. */
export function decodeNibbles(w: usize, to: usize, chunks: i32, codebook: v128): void {
  const mask = v128.load(NIBBLE_MASK);
  for (let c = 0; c < chunks; c++) {
    for (let v: usize = 0; v < 64; v += 16) {
      const codes = v128.load(w + v);
      v128.store(to + v, swizzle(codebook, v128.and(codes, mask)));
      v128.store(to + v, swizzle(codebook, v128.and(i16x8.shr_u(codes, 4), mask)), 64);
    }
    w += 64;
    to += 128;
  }
}
