/** Metadata as [key, type number, value]; an array's value is [element type, elements]. */
export type Entry = [key: string, type: number, value: unknown];

export interface TensorEntry {
  name: string;
  /** Row-major, outermost first. */
  shape: number[];
  type: number;
  data: Uint8Array;
  /** Overrides the position that the layout gives. */
  position?: number;
}

export const U32 = 4;
export const F32 = 6;
export const BOOL = 7;
export const STRING = 8;
export const ARRAY = 9;

/** Writes a GGUF file the plainest way, for tests. */
export function writeGguf(
  entries: Entry[],
  tensors: TensorEntry[] = [],
  version = 3,
  alignment = 32,
): Uint8Array {
  const out: number[] = [];
  const number = (size: number, set: (view: DataView) => void) => {
    const view = new DataView(new ArrayBuffer(size));
    set(view);
    out.push(...new Uint8Array(view.buffer));
  };
  const u32 = (value: number) => number(4, (view) => view.setUint32(0, value, true));
  const u64 = (value: number) => number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  const string = (value: string) => {
    const bytes = new TextEncoder().encode(value);
    u64(bytes.length);
    for (const byte of bytes) out.push(byte);
  };
  const write = (type: number, value: unknown): void => {
    if (type === U32 || type === 5) number(4, (view) => view.setInt32(0, value as number, true));
    else if (type === F32) number(4, (view) => view.setFloat32(0, value as number, true));
    else if (type === BOOL || type === 0) out.push(Number(value));
    else if (type === STRING) string(value as string);
    else {
      const [element, items] = value as [number, unknown[]];
      u32(element);
      u64(items.length);
      for (const item of items) write(element, item);
    }
  };
  u32(0x46554747);
  u32(version);
  u64(tensors.length);
  u64(entries.length);
  for (const [key, type, value] of entries) {
    string(key);
    u32(type);
    write(type, value);
  }
  let position = 0;
  const pad = (length: number) => Math.ceil(length / alignment) * alignment;
  for (const tensor of tensors) {
    string(tensor.name);
    u32(tensor.shape.length);
    for (const size of [...tensor.shape].reverse()) u64(size);
    u32(tensor.type);
    u64(tensor.position ?? position);
    position += pad(tensor.data.length);
  }
  while (out.length % alignment !== 0) out.push(0);
  for (const tensor of tensors) {
    for (const byte of tensor.data) out.push(byte);
    while (out.length % alignment !== 0) out.push(0);
  }
  return Uint8Array.from(out);
}

/** The metadata of a small model; `extra` entries are added or replace. */
export function modelEntries(architecture: string, extra: Entry[] = []): Entry[] {
  const base: Entry[] = [
    ["general.architecture", STRING, architecture],
    [`${architecture}.block_count`, U32, 1],
    [`${architecture}.context_length`, U32, 64],
    [`${architecture}.embedding_length`, U32, 16],
    [`${architecture}.feed_forward_length`, U32, 24],
    [`${architecture}.attention.head_count`, U32, 4],
    [`${architecture}.attention.head_count_kv`, U32, 2],
    [`${architecture}.attention.layer_norm_rms_epsilon`, F32, 1e-5],
    [`${architecture}.rope.freq_base`, F32, 10000],
  ];
  const replaced = new Set(extra.map(([key]) => key));
  return [...base.filter(([key]) => !replaced.has(key)), ...extra];
}

export function f32Tensor(name: string, shape: number[], values?: ArrayLike<number>): TensorEntry {
  const count = shape.reduce((product, size) => product * size, 1);
  const floats = Float32Array.from({ length: count }, (_, i) => values?.[i] ?? i + 1);
  return { name, shape, type: 0, data: new Uint8Array(floats.buffer) };
}
