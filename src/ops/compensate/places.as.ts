// Where the chosen rows of a residual file will be in memory, and what has to be read for it: each row once, however many
// tokens chose it, and rows that are near to each other in the file together.

/** Rows this near to each other are one reading, with what lies between: a call costs as much as copying 5 KB. */
const GAP_BYTES: i32 = 4096;
/** A reading is no longer than this, so that threads can share. */
const MOST_BYTES: i32 = 1 << 16;

/** In the table: a row that has no place yet. No row is there. */
const WANTED: u32 = 1;

/**
 * args: list, entries, columns, stride, table, staging, rows of staging, places, reads, whether list ascends.
 *
 * For every entry of list, a channel, places gets the address of its row. reads gets the number of readings, then row,
 * rows and address of each. `table` is memory for [columns] words. By the first thread, which chose a single token's
 * channels.
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
  const places = <usize>load<u32>(args, 28);
  const reads = <usize>load<u32>(args, 32);
  const ascends = load<i32>(args, 36);

  memory.fill(table, 0, <usize>columns << 2);
  let missing = 0;
  for (let i = 0; i < entries; i++) {
    const word = table + (<usize>load<u32>(list + (<usize>i << 2)) << 2);
    missing += i32(load<u32>(word) == 0);
    store<u32>(word, WANTED);
  }

  let count = 0;
  let staged = 0;
  // The reading that ends with the last row.
  let open: usize = 0;
  let last = 0;
  const steps = ascends ? entries : columns;
  for (let i = 0; i < steps; i++) {
    const channel = ascends ? load<i32>(list + (<usize>i << 2)) : i;
    const word = table + (<usize>channel << 2);
    if (load<u32>(word) != WANTED) continue;
    missing--;
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
      open = reads + 4 + <usize>count * 12;
      count++;
      store<i32>(open, channel);
      store<i32>(open, 1, 4);
      store<u32>(open, staging + staged * stride, 8);
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
}
