/**
 * Tail-biting Viterbi search over the bit-shift trellis: the state has 16 bits, each step shifts in `shift`
 * new ones and stands for two weights (Q-Palette, section 3).
 *
 * After a step only the low 16 - shift bits of a state matter, so one survivor cost per such key is kept, and no
 * back pointers: the trace finds each predecessor again from the costs. Costs are exact 32-bit sums of squares of
 * fixed-point numbers with 11 fractional bits.
 */

const SHIFT_MAX: i32 = 10;
const BLOCK: i32 = 16;
const STEPS: i32 = 128;
/** Above every real cost: with values within 6 and codes within 4.5 a step adds at most 2 (10.5 x 2048)^2. */
const DEAD: u32 = 0x80000000;

/** Code of each state, two i16: first as the host writes it, by state; then in the order of the search. */
const CODES: usize = (__heap_base + 63) & ~63;
const TABLE: usize = CODES + 65536 * 4;
/** Two i16 per step. */
const VALUES: usize = TABLE + 65536 * 4;
/** The state of each step. */
const STATES: usize = VALUES + STEPS * 4;
/** Least survivor cost before each step, and the limit above which a survivor is not expanded. */
const LEAST: usize = STATES + STEPS * 2;
const LIMITS: usize = LEAST + (STEPS + 1) * 4;
/** Survivors to expand in one group: cost above the least, and address of the codes of its successors. */
const LIST: usize = LIMITS + (STEPS + 1) * 4;
/** Survivor costs before each step, by key. */
const COSTS: usize = (LIST + (1 << SHIFT_MAX) * 8 + 8 + 63) & ~63;
const END: usize = COSTS + (STEPS + 1) * 8192 * 4;

let shift: i32 = 0;
let beam: f32 = 0;
/** Keys = groups x keysPerGroup; a group's keys are reached from `rows` states each. */
let keys: i32 = 0;
let groups: i32 = 0;
let keysPerGroup: i32 = 0;
let rows: i32 = 0;
/** Bytes of codes of a block of keys in one row; all rows of a block lie together, so the search reads in order. */
let blockBytes: usize = 0;

/** Reserves memory; the address of the codes: 65536 x 2 i16. */
export function reserve(): usize {
  const missing = <i32>((END + 65535) >> 16) - memory.size();
  if (missing > 0) memory.grow(missing);
  return CODES;
}

/** The address of the values to encode: 256 i16, scaled as the codes are. */
export function values(): usize {
  return VALUES;
}

/** The address of the resulting states: 128 u16. */
export function states(): usize {
  return STATES;
}

/**
 * Chooses the rate: `bits` per step, 3 to 10, for the codes at `reserve()`. Survivors are expanded up to `width`
 * times the mean survivor's cost above the least; 0 expands all,
 * as do 3 and 4 bits per step.
 */
export function prepare(bits: i32, width: f32): void {
  shift = bits;
  beam = bits < 5 ? 0 : width;
  keys = 65536 >> shift;
  groups = shift < 8 ? 65536 >> (2 * shift) : 1;
  keysPerGroup = keys / groups;
  rows = 1 << shift;
  blockBytes = min(keysPerGroup, BLOCK) << 2;
  let to = TABLE;
  for (let first = 0; first < keys; first += <i32>(blockBytes >> 2)) {
    for (let row = 0; row < rows; row++) {
      memory.copy(to, CODES + (<usize>(row * keys + first) << 2), blockBytes);
      to += blockBytes;
    }
  }
}

/**
 * Encodes the values in two passes: a free one over `window` steps either side of the seam finds the bits that
 * both ends share, the second ties both ends to them. Returns the squared error in units of the fixed point.
 */
export function encode(window: i32): u32 {
  const from = (STEPS - window) & (STEPS - 1);
  trace(from, 2 * window, forward(from, 2 * window, -1, -1), window);
  const seam = <i32>load<u16>(STATES) >> shift;
  forward(0, STEPS, seam, seam);
  trace(0, STEPS, seam, 0);
  let error: u32 = 0;
  for (let step = 0; step < STEPS; step++) error += distance(step, load<u16>(STATES + (step << 1)));
  return error;
}

@inline
function distance(position: i32, state: i32): u32 {
  const value = VALUES + (position << 2);
  const code = CODES + (<usize>state << 2);
  const a = <i32>load<i16>(value) - <i32>load<i16>(code);
  const b = <i32>load<i16>(value, 2) - <i32>load<i16>(code, 2);
  return a * a + b * b;
}

/**
 * Fills the survivor costs of `steps` steps from a circular position, from key `start` (-1: any) to key `end`
 * (-1: any). Returns the best last key.
 */
function forward(from: i32, steps: i32, start: i32, end: i32): i32 {
  for (let key = 0; key < keys; key++) {
    store<u32>(COSTS + (<usize>key << 2), start < 0 || key == start ? 0 : DEAD);
  }
  store<u32>(LEAST, 0);
  store<u32>(LIMITS, DEAD - 1);
  let costs = COSTS;
  for (let step = 0; step < steps; step++) {
    const ahead = (steps - step) * shift;
    if (end >= 0 && ahead < 16 - shift) keepTowards(costs, end >> ahead, 16 - shift - ahead);
    if (step > 0) survey(costs, step);
    advance(costs, step, (from + step) & (STEPS - 1));
    costs += <usize>keys << 2;
  }
  survey(costs, steps);
  const least = load<u32>(LEAST + (steps << 2));
  for (let key = 0; key < keys; key++) if (load<u32>(costs + (<usize>key << 2)) == least) return key;
  return 0;
}

/** Drops the keys whose low `bits` bits cannot become those of the end. */
function keepTowards(costs: usize, end: i32, bits: i32): void {
  for (let key = 0; key < keys; key++) {
    if ((key & ((1 << bits) - 1)) != end) store<u32>(costs + (<usize>key << 2), DEAD);
  }
}

/** Finds the least cost and, from the mean (costs capped, so that dead keys open the beam), the limit. */
function survey(costs: usize, step: i32): void {
  let best = i32x4.splat(-1);
  let total = i32x4.splat(0);
  const cap = i32x4.splat(0x0fffffff);
  for (let place = costs, last = costs + (<usize>keys << 2); place < last; place += 16) {
    const cost = v128.load(place);
    best = i32x4.min_u(best, cost);
    total = i32x4.add(total, i32x4.shr_u(i32x4.min_u(cost, cap), 8));
  }
  best = i32x4.min_u(best, v128.shuffle<u32>(best, best, 2, 3, 0, 1));
  best = i32x4.min_u(best, v128.shuffle<u32>(best, best, 1, 0, 3, 2));
  const least = <u32>i32x4.extract_lane(best, 0);
  const sum: u64 =
    <u64>(<u32>i32x4.extract_lane(total, 0)) + <u64>(<u32>i32x4.extract_lane(total, 1)) +
    <u64>(<u32>i32x4.extract_lane(total, 2)) + <u64>(<u32>i32x4.extract_lane(total, 3));
  const mean = <f64>sum * (256.0 / <f64>keys);
  const limit = beam > 0 ? <f64>least + <f64>beam * max(mean - <f64>least, 0) : <f64>DEAD;
  store<u32>(LEAST + (step << 2), least);
  store<u32>(LIMITS + (step << 2), <u32>min(limit, <f64>(DEAD - 1)));
}

/** One step: the costs of the next keys from those of the last. */
function advance(costs: usize, step: i32, position: i32): void {
  const value = v128.load32_splat(VALUES + (position << 2));
  const least = load<u32>(LEAST + (step << 2));
  const limit = load<u32>(LIMITS + (step << 2));
  const groupBytes = <usize>(rows * keysPerGroup) << 2;
  let target = costs + (<usize>keys << 2);
  let codes = TABLE;
  for (let group = 0; group < groups; group++) {
    const place = costs + (<usize>group << 2);
    if (shift == 3) expandAll8(place, codes, value, least, target);
    else if (shift == 4) expandAll16(place, codes, value, least, target);
    else if (shift < 8) expandList(listRows(place, codes, least, limit), value, target);
    else expandList(listFans(place, codes, least, limit), value, target);
    codes += groupBytes;
    target += <usize>keysPerGroup << 2;
  }
}

/** Lists a group's survivors within the limit (shift < 8: one row of codes each). Returns the list's end. */
@inline
function listRows(place: usize, codes: usize, least: u32, limit: u32): usize {
  const stride = <usize>groups << 2;
  let list = LIST;
  for (let row = 0; row < rows; row++) {
    const cost = load<u32>(place);
    store<u32>(list, cost - least);
    store<u32>(list, <u32>codes, 4);
    list += <usize>(cost <= limit) << 3;
    place += stride;
    codes += blockBytes;
  }
  return list;
}

/** The same for shift >= 8: one group, several rows of codes per survivor. */
function listFans(place: usize, codes: usize, least: u32, limit: u32): usize {
  const fan = 1 << (2 * shift - 16);
  let list = LIST;
  for (let key = 0; key < keys; key++, place += 4, codes += blockBytes * fan) {
    const cost = load<u32>(place);
    if (cost > limit) continue;
    for (let i = 0; i < fan; i++, list += 8) {
      store<u32>(list, cost - least);
      store<u32>(list, <u32>(codes + blockBytes * i), 4);
    }
  }
  return list;
}

@inline
function reach(cost: v128, value: v128, code: v128): v128 {
  const difference = i16x8.sub(value, code);
  return i32x4.add(cost, i32x4.dot_i16x8_s(difference, difference));
}

/** A group's keys from the listed rows, 16 at a time. */
function expandList(end: usize, value: v128, target: usize): void {
  const dead = i32x4.splat(DEAD);
  const groupBytes = <usize>keysPerGroup << 2;
  let codes: usize = 0;
  for (let offset: usize = 0; offset < groupBytes; offset += blockBytes) {
    let a = dead;
    let b = dead;
    let c = dead;
    let d = dead;
    for (let entry = LIST; entry < end; entry += 8) {
      const cost = v128.load32_splat(entry);
      const code = <usize>load<u32>(entry, 4) + codes;
      a = i32x4.min_u(a, reach(cost, value, v128.load(code)));
      b = i32x4.min_u(b, reach(cost, value, v128.load(code, 16)));
      c = i32x4.min_u(c, reach(cost, value, v128.load(code, 32)));
      d = i32x4.min_u(d, reach(cost, value, v128.load(code, 48)));
    }
    v128.store(target + offset, a);
    v128.store(target + offset, b, 16);
    v128.store(target + offset, c, 32);
    v128.store(target + offset, d, 48);
    codes += <usize>rows * blockBytes;
  }
}

/** Without a list, for the low rates, where listing costs as much as expanding: 16 keys from 16 rows. */
function expandAll16(place: usize, code: usize, value: v128, least: u32, target: usize): void {
  const stride = <usize>groups << 2;
  const lowest = i32x4.splat(least);
  let a = i32x4.splat(DEAD);
  let b = a;
  let c = a;
  let d = a;
  for (let row = 0; row < 16; row++) {
    const cost = i32x4.sub(v128.load32_splat(place), lowest);
    a = i32x4.min_u(a, reach(cost, value, v128.load(code)));
    b = i32x4.min_u(b, reach(cost, value, v128.load(code, 16)));
    c = i32x4.min_u(c, reach(cost, value, v128.load(code, 32)));
    d = i32x4.min_u(d, reach(cost, value, v128.load(code, 48)));
    code += 64;
    place += stride;
  }
  v128.store(target, a);
  v128.store(target, b, 16);
  v128.store(target, c, 32);
  v128.store(target, d, 48);
}

/** 8 keys from 8 rows. */
function expandAll8(place: usize, code: usize, value: v128, least: u32, target: usize): void {
  const stride = <usize>groups << 2;
  const lowest = i32x4.splat(least);
  let a = i32x4.splat(DEAD);
  let b = a;
  for (let row = 0; row < 8; row++) {
    const cost = i32x4.sub(v128.load32_splat(place), lowest);
    a = i32x4.min_u(a, reach(cost, value, v128.load(code)));
    b = i32x4.min_u(b, reach(cost, value, v128.load(code, 16)));
    code += 32;
    place += stride;
  }
  v128.store(target, a);
  v128.store(target, b, 16);
}

/** Walks back from `key` after `steps` steps to step `first`, writing states at their circular positions. */
function trace(from: i32, steps: i32, key: i32, first: i32): void {
  for (let step = steps - 1; step >= first; step--) {
    const costs = COSTS + (<usize>(step * keys) << 2);
    const least = load<u32>(LEAST + (step << 2));
    const limit = load<u32>(LIMITS + (step << 2));
    const total = load<u32>(COSTS + (<usize>((step + 1) * keys + key) << 2));
    const position = (from + step) & (STEPS - 1);
    for (let state = key; state < 65536; state += keys) {
      const cost = load<u32>(costs + (<usize>(state >> shift) << 2));
      if (cost > limit || cost - least > total) continue;
      if (cost - least + distance(position, state) != total) continue;
      store<u16>(STATES + (position << 1), <u16>state);
      key = state >> shift;
      break;
    }
  }
}
