import type { Cursor } from "./cursor.ts";

/** An array of numbers or booleans keeps its stored width; 64-bit integers become float64. */
export type NumberArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

/** A metadata value. Arrays of arrays, which no known key uses, are checked but not kept: they read as `undefined`. */
export type MetadataValue = number | boolean | string | string[] | NumberArray | undefined;

export type Metadata = ReadonlyMap<string, MetadataValue>;

interface Scalar {
  readonly size: number;
  readonly read: (cursor: Cursor) => number;
  readonly array: (length: number) => NumberArray;
}

const BOOL = 7;
const STRING = 8;
const ARRAY = 9;
/** Deeper nesting serves nobody. */
const MAX_DEPTH = 4;

const SCALARS: ReadonlyMap<number, Scalar> = new Map<number, Scalar>([
  [0, { size: 1, read: (cursor) => cursor.u8(), array: (length) => new Uint8Array(length) }],
  [1, { size: 1, read: (cursor) => cursor.i8(), array: (length) => new Int8Array(length) }],
  [2, { size: 2, read: (cursor) => cursor.u16(), array: (length) => new Uint16Array(length) }],
  [3, { size: 2, read: (cursor) => cursor.i16(), array: (length) => new Int16Array(length) }],
  [4, { size: 4, read: (cursor) => cursor.u32(), array: (length) => new Uint32Array(length) }],
  [5, { size: 4, read: (cursor) => cursor.i32(), array: (length) => new Int32Array(length) }],
  [6, { size: 4, read: (cursor) => cursor.f32(), array: (length) => new Float32Array(length) }],
  [BOOL, { size: 1, read: readBool, array: (length) => new Uint8Array(length) }],
  [10, { size: 8, read: (cursor) => cursor.u64(), array: (length) => new Float64Array(length) }],
  [11, { size: 8, read: (cursor) => cursor.i64(), array: (length) => new Float64Array(length) }],
  [12, { size: 8, read: (cursor) => cursor.f64(), array: (length) => new Float64Array(length) }],
]);

/** Reads a count or length that must be possible: at least `itemBytes` follow for each item. */
export async function readCount(cursor: Cursor, itemBytes: number, what: string): Promise<number> {
  await cursor.need(8, what);
  const count = cursor.u64();
  if (count * itemBytes > cursor.remaining) {
    throw cursor.error(`${what} of ${count}, more than the ${cursor.remaining} bytes left can hold`);
  }
  return count;
}

export async function readString(
  cursor: Cursor,
  what: string,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<string> {
  const length = await readCount(cursor, 1, `${what}: a length`);
  if (length > maxBytes) throw cursor.error(`${what} of ${length} bytes, at most ${maxBytes} are allowed`);
  await cursor.need(length, what);
  return cursor.utf8(length);
}

/** Reads one value, its type number first. */
export async function readValue(cursor: Cursor, key: string): Promise<MetadataValue> {
  await cursor.need(4, key);
  const type = cursor.u32();
  if (type === STRING) return readString(cursor, key);
  if (type === ARRAY) return readArray(cursor, key);
  const scalar = scalarOf(cursor, type, key);
  await cursor.need(scalar.size, key);
  const value = scalar.read(cursor);
  return type === BOOL ? value !== 0 : value;
}

async function readArray(cursor: Cursor, key: string): Promise<MetadataValue> {
  await cursor.need(4, key);
  const type = cursor.u32();
  if (type === STRING) return readStrings(cursor, key);
  if (type === ARRAY) return skipArrays(cursor, key, 1);
  const { size, read, array } = scalarOf(cursor, type, key);
  const length = await readCount(cursor, size, `${key}: an array`);
  const values = array(length);
  for (let i = 0; i < length; ) {
    await cursor.need(size, key);
    const end = Math.min(length, i + Math.floor(cursor.buffered / size));
    for (; i < end; i++) values[i] = read(cursor);
  }
  return values;
}

async function readStrings(cursor: Cursor, key: string): Promise<string[]> {
  const length = await readCount(cursor, 8, `${key}: an array`);
  const values: string[] = [];
  for (let i = 0; i < length; i++) {
    if (cursor.buffered < 8) await cursor.need(8, key);
    const size = cursor.u64();
    if (size > cursor.buffered) await cursor.need(size, key);
    values.push(cursor.utf8(size));
  }
  return values;
}

async function skipArrays(cursor: Cursor, key: string, depth: number): Promise<undefined> {
  if (depth > MAX_DEPTH) throw cursor.error(`${key}: arrays nested more than ${MAX_DEPTH} deep`);
  const length = await readCount(cursor, 12, `${key}: an array`);
  for (let i = 0; i < length; i++) {
    if (cursor.buffered < 4) await cursor.need(4, key);
    const type = cursor.u32();
    if (type === ARRAY) await skipArrays(cursor, key, depth + 1);
    else if (type === STRING) await readStrings(cursor, key);
    else {
      const { size } = scalarOf(cursor, type, key);
      const count = await readCount(cursor, size, `${key}: an array`);
      cursor.skip(count * size, key);
    }
  }
  return undefined;
}

function scalarOf(cursor: Cursor, type: number, key: string): Scalar {
  const scalar = SCALARS.get(type);
  if (scalar === undefined) throw cursor.error(`${key}: unknown metadata type ${type}`);
  return scalar;
}

function readBool(cursor: Cursor): number {
  const value = cursor.u8();
  if (value > 1) throw cursor.error(`a boolean of ${value}`);
  return value;
}
