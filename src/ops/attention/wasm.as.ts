// Attention by tiles: the queries of a few rows and of the heads that share keys and values, over blocks of positions
// (Dao et al., 2022). A block is read, and converted to floats where the cache holds less, once for all queries of a
// tile. Blocks begin at multiples of their size, and what a query does not see adds exactly nothing: its result never
// depends on which others share its tile.

import { exp1, exp4, maxLanes, sumLanes, tanh4, touch } from "../../backends/wasm/math.as";
import { addPanel } from "../linear/floatTile.as";
import { F32, headBytesOf, INT8, loadHeads } from "./cacheRows.as";
import { mixValues } from "./mixValues.as";

/** Positions of a block; a tile's scores in them are four panels of 16. */
const BLOCK = 64;
/** Most queries of a tile. */
const QUERIES = 48;

/** Parts of a thread's scratch, then queries, sums, keys and values, rows of heads each. */
const SCORES: usize = 0;
const WEIGHTS: usize = SCORES + QUERIES * BLOCK * 4;
const KEY_SCALES: usize = WEIGHTS + QUERIES * BLOCK * 4;
const VALUE_SCALES: usize = KEY_SCALES + BLOCK * 4;
/** For each query the first position seen and the one after the last, the largest score and the sum of weights. */
const STATE: usize = VALUE_SCALES + BLOCK * 4;
const SPARE: usize = STATE + QUERIES * 16;
const ROWS: usize = SPARE + 16;

const LANES = memory.data<i32>([0, 1, 2, 3], 16);

/**
 * args: q, keys, values, capacity, positions, sequences, out, rows, heads, kvHeads, headSize, scale, window, softcap,
 * type, scratch, scratch bytes per thread
 */
export function attention(args: usize, t: i32, n: i32): void {
  const positions = <usize>load<u32>(args, 16);
  const sequences = <usize>load<u32>(args, 20);
  const rows = load<i32>(args, 28);
  const heads = load<i32>(args, 32);
  const group = heads / load<i32>(args, 36);
  const scratch = <usize>load<u32>(args, 60) + <usize>t * load<u32>(args, 64);
  const most = max(1, QUERIES / group);
  let tiles = 0;
  for (let row = 0; row < rows; tiles++) row = endOfTile(sequences, row, rows, most);
  // Threads get equal runs of the heads of all tiles; a group of heads may be split between two.
  const from = (tiles * heads * t) / n;
  const to = (tiles * heads * (t + 1)) / n;
  let unit = 0;
  for (let row = 0; row < rows; unit += heads) {
    const next = endOfTile(sequences, row, rows, most);
    const last = min(to - unit, heads);
    for (let head = max(from - unit, 0); head < last; ) {
      const stop = min(min(last, (head / group + 1) * group), head + QUERIES);
      attendTile(args, scratch, row, next, head, stop, load<i32>(sequences + (<usize>row << 2)), positions);
      head = stop;
    }
    row = next;
  }
}

/** Rows of one sequence from `row` on, at most so many. */
function endOfTile(sequences: usize, row: i32, rows: i32, most: i32): i32 {
  const sequence = load<i32>(sequences + (<usize>row << 2));
  const end = min(rows, row + most);
  let next = row + 1;
  while (next < end && load<i32>(sequences + (<usize>next << 2)) == sequence) next++;
  return next;
}

/** Rows [row, rowEnd) of a sequence, heads [head, headEnd) of one group. */
function attendTile(
  args: usize, scratch: usize, row: i32, rowEnd: i32, head: i32, headEnd: i32, sequence: i32, positions: usize,
): void {
  const capacity = load<i32>(args, 12);
  const heads = load<i32>(args, 32);
  const kvHeads = load<i32>(args, 36);
  const headSize = load<i32>(args, 40);
  const window = load<i32>(args, 48);
  const type = load<i32>(args, 56);
  const rowBytes = <usize>headSize << 2;
  const headBytes = headBytesOf(type, headSize);
  const base = <usize>((sequence * kvHeads + head / (heads / kvHeads)) * capacity) * headBytes;
  const keys = <usize>load<u32>(args, 4) + base;
  const values = <usize>load<u32>(args, 8) + base;
  const queryRows = scratch + ROWS;
  const sums = queryRows + QUERIES * rowBytes;
  const keyRows = sums + QUERIES * rowBytes;
  const valueRows = keyRows + BLOCK * rowBytes;
  const width = headEnd - head;
  const queries = (rowEnd - row) * width;

  let first = i32.MAX_VALUE;
  let end = 0;
  let state = scratch + STATE;
  let query = queryRows;
  for (let r = row; r < rowEnd; r++) {
    const position = load<i32>(positions + (<usize>r << 2));
    const sees = window ? max(0, position - window + 1) : 0;
    first = min(first, sees);
    end = max(end, position + 1);
    for (let h = head; h < headEnd; h++) {
      scaleTo(<usize>load<u32>(args) + <usize>(r * heads + h) * rowBytes, query, headSize, load<f32>(args, 44));
      store<i32>(state, sees);
      store<i32>(state, position + 1, 4);
      store<f32>(state, -Infinity, 8);
      store<f32>(state, 0, 12);
      state += 16;
      query += rowBytes;
    }
  }
  memory.fill(sums, 0, <usize>queries * rowBytes);

  for (let start = first & ~(BLOCK - 1); start < end; start += BLOCK) {
    const count = min(BLOCK, end - start);
    const at = <usize>start * headBytes;
    // Keys and values are read in turn, which the processor does not foresee: a quarter of the time.
    touch(values + at, <usize>count * headBytes, scratch + SPARE);
    // Scores are computed 16 at a time: past the last key lies anything, in scratch at least something.
    const inPlace = type == F32 && !(count & 15);
    if (!inPlace) loadHeads(type, keys + at, count, headSize, keyRows, scratch + KEY_SCALES);
    const block = inPlace ? keys + at : keyRows;
    memory.fill(scratch + SCORES, 0, <usize>queries << 8);
    for (let panel = 0; panel * 16 < count; panel++) {
      addPanel(
        queryRows, rowBytes, queries, block + <usize>(panel * 16) * rowBytes, rowBytes, headSize,
        scratch + SCORES + <usize>(panel * queries) * 64,
      );
    }
    const next = min(BLOCK, end - start - BLOCK);
    if (next > 0) touch(keys + at + BLOCK * headBytes, <usize>next * headBytes, scratch + SPARE);
    if (type != F32) loadHeads(type, values + at, count, headSize, valueRows, scratch + VALUE_SCALES);
    weigh(scratch, queries, start, count, load<f32>(args, 52), type == INT8, sums, headSize);
    mixValues(
      sums, scratch + WEIGHTS, queries, type == F32 ? values + at : valueRows, count, headSize,
    );
  }

  state = scratch + STATE;
  let sum = sums;
  for (let r = row; r < rowEnd; r++) {
    let out = <usize>load<u32>(args, 24) + <usize>(r * heads + head) * rowBytes;
    for (let h = head; h < headEnd; h++) {
      scaleTo(sum, out, headSize, 1 / load<f32>(state, 12));
      state += 16;
      sum += rowBytes;
      out += rowBytes;
    }
  }
}

/** Scores of a block to weights, e^(score - largest so far); what was summed before shrinks when the largest grows. */
function weigh(
  scratch: usize, queries: i32, start: i32, count: i32, softcap: f32, scaled: bool, sums: usize, headSize: i32,
): void {
  const nothing = f32x4.splat(-Infinity);
  for (let query = 0; query < queries; query++) {
    const state = scratch + STATE + (<usize>query << 4);
    const weights = scratch + WEIGHTS + <usize>query * (BLOCK * 4);
    const low = max(0, load<i32>(state) - start);
    const high = min(count, load<i32>(state, 4) - start);
    if (low >= high) {
      for (let i = 0; i < count; i += 4) v128.store(weights + (<usize>i << 2), i32x4.splat(0));
      continue;
    }
    let peaks = nothing;
    for (let i = 0; i < count; i += 4) {
      const at = <usize>i << 2;
      let score = v128.load(scratch + SCORES + <usize>((i >> 4) * queries + query) * 64 + (at & 63));
      if (scaled) score = f32x4.mul(score, v128.load(scratch + KEY_SCALES + at));
      if (softcap != 0) score = f32x4.mul(f32x4.splat(softcap), tanh4(f32x4.mul(score, f32x4.splat(1 / softcap))));
      if (i < low || i + 4 > high) score = v128.bitselect(score, nothing, seen(i, low, high));
      v128.store(weights + at, score);
      peaks = f32x4.pmax(peaks, score);
    }
    const before = load<f32>(state, 8);
    const largest = max(maxLanes(peaks), before);
    let total = load<f32>(state, 12);
    if (total != 0 && largest > before) {
      const shrink = exp1(before - largest);
      const row = sums + (<usize>(query * headSize) << 2);
      total *= shrink;
      scaleTo(row, row, headSize, shrink);
    }
    const shift = f32x4.splat(largest);
    let totals = f32x4.splat(0);
    for (let i = 0; i < count; i += 4) {
      const at = <usize>i << 2;
      let weight = exp4(f32x4.sub(v128.load(weights + at), shift));
      const partial = i < low || i + 4 > high;
      if (partial) weight = v128.and(weight, seen(i, low, high));
      totals = f32x4.add(totals, weight);
      if (scaled) {
        weight = f32x4.mul(weight, v128.load(scratch + VALUE_SCALES + at));
        if (partial) weight = v128.and(weight, seen(i, low, high));
      }
      v128.store(weights + at, weight);
    }
    store<f32>(state, largest, 8);
    store<f32>(state, total + sumLanes(totals), 12);
  }
}

/** Which of the positions from `i` on lie in [low, high). */
// @ts-ignore: decorator
@inline
function seen(i: i32, low: i32, high: i32): v128 {
  const at = i32x4.add(i32x4.splat(i), v128.load(LANES));
  return v128.and(i32x4.ge_s(at, i32x4.splat(low)), i32x4.lt_s(at, i32x4.splat(high)));
}

/** out = x * factor, row of `size`. */
function scaleTo(x: usize, out: usize, size: i32, factor: f32): void {
  const factors = f32x4.splat(factor);
  let i = 0;
  for (; i + 4 <= size; i += 4) v128.store(out + (<usize>i << 2), f32x4.mul(v128.load(x + (<usize>i << 2)), factors));
  for (; i < size; i++) store<f32>(out + (<usize>i << 2), load<f32>(x + (<usize>i << 2)) * factor);
}
