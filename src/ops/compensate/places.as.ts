// Where the chosen rows of a residual file will be in memory, and what has to be read for it. Rows that are chosen again
// and again stay in a cache, when there is one; others go to a staging area, each once however many tokens chose it.

import * as op from "../../backends/wasm/opcodes";

/** Rows this near to each other are one read, with what lies between: a call costs as much as copying 5 KB. */
const GAP_BYTES: i32 = 4096;
/** A read is no longer than this, so that threads can share. */
const MOST_BYTES: i32 = 1 << 16;

/** Set in a channel's word of the table while its row has no place yet. */
const WANTED: u32 = 0x80000000;

/** A cache's words: failures seen, hand of the clock; for each row its channel + 1, and how often it was chosen. */
const HEADER: usize = 8;
const ENTRY: usize = 8;
/** Set in the second word of an entry whose row is wanted now. */
const HELD: u32 = 256;
/** Chosen more often than this, a row is not kept any longer after its last time. */
const MOST_TIMES: u32 = 15;

/**
 * args: list, entries, columns, stride, table, staging, rows of staging, cache (or 0), its rows, its first row, whether
 * it may change, places, reads.
 *
 * For every entry of list, a channel, places gets the address of its row. reads gets the number of readings, then row,
 * rows and address of each. `table` is memory for [columns] words. By the first thread, which chose a single token's channels.
 */
export function placeRows(args: usize, t: i32, n: i32): void {
  if (t) return;
  const list = <usize>load<u32>(args);
  const entries = load<i32>(args, 4);
  const columns = load<i32>(args, 8);
  const stride = load<i32>(args, 12);
  const table = <usize>load<u32>(args, 16);
  const staging = load<u32>(args, 20);
  const capacity = load<i32>(args, 24);
  const cache = <usize>load<u32>(args, 28);
  const cached = load<i32>(args, 32);
  const firstRow = load<u32>(args, 36);
  const single = load<i32>(args, 40);
  const places = <usize>load<u32>(args, 44);
  const reads = <usize>load<u32>(args, 48);

  memory.fill(table, 0, <usize>columns << 2);
  if (cached) enterCached(cache, cached, table);
  let missing = 0;
  for (let i = 0; i < entries; i++) {
    const word = table + (<usize>load<u32>(list + (<usize>i << 2)) << 2);
    const slot = load<u32>(word);
    if (slot & WANTED) continue;
    store<u32>(word, slot | WANTED);
    if (slot == 0) missing++;
    else holdEntry(entryOf(cache, slot - 1));
  }

  let count = 0;
  let staged = 0;
  // The reading that ends with the last staged row.
  let open: usize = 0;
  let last = 0;
  // One token's channels ascend, the last one maybe twice.
  const steps = single ? entries : columns;
  for (let i = 0; i < steps; i++) {
    const channel = single ? load<i32>(list + (<usize>i << 2)) : i;
    const word = table + (<usize>channel << 2);
    const slot = load<u32>(word);
    if (!(slot & WANTED) || (single && i > 0 && channel == load<i32>(list + (<usize>(i - 1) << 2)))) continue;
    if (slot != WANTED) {
      store<u32>(word, firstRow + ((slot & ~WANTED) - 1) * stride);
      continue;
    }
    missing--;
    const victim = single && cached ? takeEntry(cache, cached, channel) : -1;
    if (victim >= 0) {
      const place = firstRow + victim * stride;
      addRead(reads, count++, channel, place);
      store<u32>(word, place);
      continue;
    }
    const between = channel - last - 1;
    if (
      open &&
      between * stride <= GAP_BYTES &&
      staged + between + missing < capacity &&
      (load<i32>(open, 4) + between + 1) * stride <= MOST_BYTES
    ) {
      staged += between;
      store<i32>(open, load<i32>(open, 4) + between + 1, 4);
    } else {
      open = addRead(reads, count++, channel, staging + staged * stride);
    }
    store<u32>(word, staging + staged * stride);
    staged++;
    last = channel;
  }
  store<i32>(reads, count);
  for (let i = 0; i < entries; i++) {
    const at = <usize>i << 2;
    store<u32>(places + at, load<u32>(table + (<usize>load<u32>(list + at) << 2)));
  }
  if (cached) releaseEntries(cache, cached);
}

function addRead(reads: usize, index: i32, row: i32, place: u32): usize {
  const at = reads + 4 + <usize>index * 12;
  store<i32>(at, row);
  store<i32>(at, 1, 4);
  store<u32>(at, place, 8);
  return at;
}

// @ts-ignore: decorator
@inline
function entryOf(cache: usize, slot: u32): usize {
  return cache + HEADER + <usize>slot * ENTRY;
}

/** Notes in the table which channels are cached. After a failed reading nobody knows what the cache holds. */
function enterCached(cache: usize, cached: i32, table: usize): void {
  const failures = atomic.load<i32>(op.FETCH_FAILURES);
  if (load<i32>(cache) != failures) {
    memory.fill(cache, 0, HEADER + <usize>cached * ENTRY);
    store<i32>(cache, failures);
  }
  for (let slot = 0; slot < cached; slot++) {
    const channel = load<i32>(entryOf(cache, slot));
    if (channel) store<i32>(table + (<usize>(channel - 1) << 2), slot + 1);
  }
}

function holdEntry(entry: usize): void {
  store<u32>(entry, min<u32>(load<u32>(entry, 4) + 1, MOST_TIMES) | HELD, 4);
}

function releaseEntries(cache: usize, cached: i32): void {
  for (let slot = 0; slot < cached; slot++) {
    const entry = entryOf(cache, slot);
    store<u32>(entry, load<u32>(entry, 4) & ~HELD, 4);
  }
}

/**
 * A slot for a row that is not cached, or -1. A clock passes one slot at each miss and takes one from it; what has come to
 * zero gives way. So a row stays that is chosen in about every third token.
 */
function takeEntry(cache: usize, cached: i32, channel: i32): i32 {
  const slot = load<i32>(cache, 4);
  store<i32>(cache, slot + 1 == cached ? 0 : slot + 1, 4);
  const entry = entryOf(cache, slot);
  const times = load<u32>(entry, 4);
  if (times & HELD) return -1;
  if (times > 1) {
    store<u32>(entry, times - 1, 4);
    return -1;
  }
  store<i32>(entry, channel + 1);
  store<u32>(entry, 1 | HELD, 4);
  return slot;
}
