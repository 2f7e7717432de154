import { PbfReader } from "pbf";
import { CheckpointError } from "../../errors.ts";
import { bufferSource } from "../byteSource.ts";
import type { ByteSource } from "../checkpoint.ts";
import { DTYPE_BYTES, type Dtype } from "../dtype.ts";
import { decodeUtf8 } from "../json.ts";
import { elementCount } from "../shape.ts";
import { type Field, walkMessage } from "./protobuf.ts";

/** A TensorProto whose data stay where they are. Field numbers: onnx.proto3, message TensorProto. */
export interface OnnxTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Element type; 4-bit types are stored two to a byte, low nibble first. */
  readonly type: Dtype | "INT4" | "UINT4";
  /** Stored bytes when laid out plainly (4-bit: rounded up). */
  readonly byteLength: number;
  /** Where the data lie, plainly laid out. */
  open(): Promise<{ source: ByteSource; offset: number }>;
}

/** Opens a file of external data by its checked relative path. */
export type ExternalOpener = (location: string, askedBy: string) => Promise<ByteSource>;

/** TensorProto.DataType. Strings and complex numbers are absent: no weight has them. */
const TYPES = new Map<number, Dtype | "INT4" | "UINT4">([
  [1, "F32"],
  [2, "U8"],
  [3, "I8"],
  [4, "U16"],
  [5, "I16"],
  [6, "I32"],
  [7, "I64"],
  [9, "BOOL"],
  [10, "F16"],
  [11, "F64"],
  [12, "U32"],
  [13, "U64"],
  [16, "BF16"],
  [17, "F8_E4M3"],
  [19, "F8_E5M2"],
  [21, "UINT4"],
  [22, "INT4"],
]);

/** Names, and key-value pairs of external data. */
const MAX_TEXT_BYTES = 64 * 1024;

interface RawFields {
  name: string;
  shape: number[];
  type: number;
  raw?: Field;
  floats?: Field;
  int32s?: Field;
  int64s?: Field;
  doubles?: Field;
  external: Map<string, string>;
  isExternal: boolean;
}

/** Reads everything of a TensorProto in [start, end) but its data. Returns undefined for types that are no weights. */
export async function readTensor(
  source: ByteSource,
  start: number,
  end: number,
  external: ExternalOpener,
): Promise<OnnxTensor | undefined> {
  const fields = await readFields(source, start, end);
  const type = TYPES.get(fields.type);
  if (type === undefined) return undefined;
  const { name, shape } = fields;
  const place = JSON.stringify(name.slice(0, 200));
  const count = elementCount(shape);
  const byteLength = count === undefined ? Number.NaN : Math.ceil(count * typeBytes(type));
  if (count === undefined || !Number.isSafeInteger(byteLength)) {
    throw new CheckpointError(source.name, `initializer ${place} has an impossible shape`, { offset: start });
  }
  const wrongSize = (found: number, offset: number): never => {
    const problem = `initializer ${place}: ${type} [${shape.slice(0, 8)}] takes ${byteLength} bytes, ${found} are stored`;
    throw new CheckpointError(source.name, problem, { offset });
  };
  const common = { name, shape, type, byteLength };
  if (fields.isExternal) {
    return { ...common, open: () => openExternal(fields.external, byteLength, place, source.name, external) };
  }
  // Packed floats and doubles are laid out as raw data are.
  const plain = fields.raw ?? (type === "F32" ? fields.floats : type === "F64" ? fields.doubles : undefined);
  if (plain !== undefined) {
    if (plain.end - plain.start !== byteLength) wrongSize(plain.end - plain.start, plain.start);
    return { ...common, open: async () => ({ source, offset: plain.start }) };
  }
  const packed = type === "I64" ? fields.int64s : fields.int32s;
  if (packed === undefined) {
    if (byteLength > 0) wrongSize(0, start);
    return { ...common, open: async () => ({ source, offset: start }) };
  }
  // Of a 4-bit type each number holds the byte of two elements.
  const isHalfByte = type === "INT4" || type === "UINT4";
  const stored = isHalfByte ? "U8" : type;
  const numbers = isHalfByte ? byteLength : count;
  // Every number takes at least one byte.
  if (numbers > packed.end - packed.start) wrongSize(packed.end - packed.start, packed.start);
  return {
    ...common,
    async open() {
      const bytes = unpack(await source.read(packed.start, packed.end - packed.start), stored, numbers);
      if (bytes === undefined) return wrongSize(packed.end - packed.start, packed.start);
      return { source: bufferSource(bytes, source.name), offset: 0 };
    },
  };
}

/** Bytes of one element, 0.5 for the 4-bit types. */
export function typeBytes(type: OnnxTensor["type"]): number {
  return type === "INT4" || type === "UINT4" ? 0.5 : DTYPE_BYTES[type];
}

async function readFields(source: ByteSource, start: number, end: number): Promise<RawFields> {
  const fields: RawFields = { name: "", shape: [], type: 0, external: new Map(), isExternal: false };
  for await (const field of walkMessage(source, start, end)) {
    switch (field.number) {
      case 1:
        if (field.delimited)
          fields.shape.push(...readCounts(await readShort(source, field), source.name, field.start));
        else fields.shape.push(field.value);
        break;
      case 2:
        fields.type = field.value;
        break;
      case 4:
        fields.floats = field;
        break;
      case 5:
        fields.int32s = field;
        break;
      case 7:
        fields.int64s = field;
        break;
      case 8:
        fields.name = decodeUtf8(await readShort(source, field), source.name, field.start);
        break;
      case 9:
        fields.raw = field;
        break;
      case 10:
        fields.doubles = field;
        break;
      case 13: {
        const [key, value] = await readPair(source, field);
        fields.external.set(key, value);
        break;
      }
      case 14:
        fields.isExternal = field.value === 1;
        break;
    }
    if (fields.shape.length > 16) {
      throw new CheckpointError(source.name, "an initializer of more than 16 dimensions", { offset: start });
    }
  }
  return fields;
}

async function readShort(source: ByteSource, field: Field): Promise<Uint8Array> {
  if (!field.delimited || field.end - field.start > MAX_TEXT_BYTES) {
    throw new CheckpointError(source.name, "a name or shape that is none", { offset: field.start });
  }
  return source.read(field.start, field.end - field.start);
}

async function readPair(source: ByteSource, field: Field): Promise<[string, string]> {
  const pair: [string, string] = ["", ""];
  for await (const part of walkMessage(source, field.start, field.end)) {
    if (part.number === 1 || part.number === 2) {
      pair[part.number - 1] = decodeUtf8(await readShort(source, part), source.name, part.start);
    }
  }
  return pair;
}

function readCounts(bytes: Uint8Array, file: string, offset: number): number[] {
  const reader = new PbfReader(bytes);
  const counts: number[] = [];
  while (reader.pos < bytes.length) counts.push(reader.readVarint());
  if (reader.pos > bytes.length) throw new CheckpointError(file, "a shape that is cut off", { offset });
  return counts;
}

/** Varints (int32_data, int64_data) laid out as raw data; undefined when their number is not `count`. */
function unpack(bytes: Uint8Array, type: Dtype, count: number): Uint8Array | undefined {
  const size = DTYPE_BYTES[type];
  const out = new Uint8Array(count * size);
  const reader = new PbfReader(bytes);
  const view = new DataView(out.buffer);
  for (let i = 0; i < count; i++) {
    if (reader.pos >= bytes.length) return undefined;
    const value = reader.readVarint(true);
    if (size === 1) out[i] = value;
    else if (size === 2) view.setUint16(2 * i, value & 0xffff, true);
    else if (size === 4) view.setInt32(4 * i, value, true);
    else view.setBigInt64(8 * i, BigInt(value), true);
  }
  return reader.pos === bytes.length ? out : undefined;
}

async function openExternal(
  entries: ReadonlyMap<string, string>,
  byteLength: number,
  place: string,
  file: string,
  open: ExternalOpener,
): Promise<{ source: ByteSource; offset: number }> {
  const location = entries.get("location") ?? "";
  const inside =
    location !== "" && !/^[\\/]|^[a-zA-Z]:|\\|\0/.test(location) && !location.split("/").includes("..");
  if (!inside) {
    const shown = JSON.stringify(location.slice(0, 100));
    throw new CheckpointError(file, `initializer ${place} lies in ${shown}, outside the model's folder`);
  }
  const offset = Number(entries.get("offset") ?? 0);
  const length = Number(entries.get("length") ?? byteLength);
  if (!Number.isSafeInteger(offset) || offset < 0 || length !== byteLength) {
    throw new CheckpointError(
      file,
      `initializer ${place}: external range ${offset}+${length} is not ${byteLength} bytes`,
    );
  }
  return { source: await open(location, file), offset };
}
