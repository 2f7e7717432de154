/**
 * Element types of stored tensors, in safetensors' names, and their conversion
 * to and from float32. Little-endian throughout, as the formats and every host in use are.
 *
 * @module
 */

/** Bytes of one element. F8_E4M3 is the finite-only variant (no infinities), as safetensors stores it. */
export const DTYPE_BYTES = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  U64: 8,
  I32: 4,
  U32: 4,
  I16: 2,
  U16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
} as const;

export type Dtype = keyof typeof DTYPE_BYTES;

export function isDtype(name: unknown): name is Dtype {
  return typeof name === "string" && Object.hasOwn(DTYPE_BYTES, name);
}

type TypedArrayConstructor<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

/** A typed view of bytes; copies them first when they are not aligned. */
function viewAs<T>(arrayType: TypedArrayConstructor<T>, bytes: Uint8Array): T {
  const size = arrayType.BYTES_PER_ELEMENT;
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  return new arrayType(aligned.buffer, aligned.byteOffset, Math.floor(aligned.byteLength / size));
}

/** The bytes of a typed array, shared with it. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Converts `out.length` stored elements to float32 (integers beyond 2^24 are rounded). */
export function toFloat32(dtype: Dtype, bytes: Uint8Array, out: Float32Array): void {
  switch (dtype) {
    case "F32":
      bytesOf(out).set(bytes.subarray(0, out.byteLength));
      return;
    case "BF16": {
      const from = viewAs(Uint16Array, bytes);
      const to = bits(out);
      for (let i = 0; i < to.length; i++) to[i] = from[i] << 16;
      return;
    }
    case "F16":
      float16ToFloat32(viewAs(Uint16Array, bytes), out);
      return;
    case "F8_E4M3":
      lookUp(float8E4M3Table(), bytes, out);
      return;
    case "F8_E5M2":
      lookUp(float8E5M2Table(), bytes, out);
      return;
    case "I64":
    case "U64": {
      const from = viewAs(Uint32Array, bytes);
      const high = dtype === "I64" ? viewAs(Int32Array, bytes) : from;
      for (let i = 0; i < out.length; i++) out[i] = high[2 * i + 1] * 2 ** 32 + from[2 * i];
      return;
    }
    case "F64":
      widen(viewAs(Float64Array, bytes), out);
      return;
    case "I32":
      widen(viewAs(Int32Array, bytes), out);
      return;
    case "U32":
      widen(viewAs(Uint32Array, bytes), out);
      return;
    case "I16":
      widen(viewAs(Int16Array, bytes), out);
      return;
    case "U16":
      widen(viewAs(Uint16Array, bytes), out);
      return;
    case "I8":
      widen(viewAs(Int8Array, bytes), out);
      return;
    case "U8":
    case "BOOL":
      widen(bytes, out);
      return;
  }
}

/** Stores float32 values as F32, F16 or BF16, rounding to nearest, ties to even; NaN stays NaN. */
export function fromFloat32(dtype: "F32" | "F16" | "BF16", values: Float32Array): Uint8Array {
  if (dtype === "F32") return bytesOf(values);
  const from = bits(values);
  const to = new Uint16Array(values.length);
  const convert = dtype === "F16" ? roundToFloat16 : roundToBfloat16;
  for (let i = 0; i < to.length; i++) to[i] = convert(from[i]);
  return bytesOf(to);
}

function bits(values: Float32Array): Uint32Array {
  return new Uint32Array(values.buffer, values.byteOffset, values.length);
}

function widen(from: ArrayLike<number>, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = from[i];
}

function lookUp(table: Float32Array, codes: Uint8Array, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = table[codes[i]];
}

function float16ToFloat32(from: Uint16Array, out: Float32Array): void {
  const to = bits(out);
  for (let i = 0; i < to.length; i++) {
    const half = from[i];
    const sign = (half & 0x8000) << 16;
    const magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) to[i] = sign | 0x7f800000 | ((magnitude & 0x3ff) << 13);
    else if (magnitude >= 0x400) to[i] = sign | ((magnitude << 13) + 0x38000000);
    else out[i] = sign ? -magnitude * 2 ** -24 : magnitude * 2 ** -24;
  }
}

function float8E4M3Table(): Float32Array {
  return Float32Array.from({ length: 256 }, (_, code) => {
    const exponent = (code >> 3) & 15;
    const mantissa = code & 7;
    if ((code & 0x7f) === 0x7f) return Number.NaN;
    const magnitude = exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10);
    return code & 0x80 ? -magnitude : magnitude;
  });
}

/** E5M2 is the upper byte of a float16. */
function float8E5M2Table(): Float32Array {
  const table = new Float32Array(256);
  float16ToFloat32(
    Uint16Array.from({ length: 256 }, (_, code) => code << 8),
    table,
  );
  return table;
}

function roundToBfloat16(word: number): number {
  if ((word & 0x7fffffff) > 0x7f800000) return (word >>> 16) | 0x40;
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

function roundToFloat16(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65520, half-way between the largest float16 and 2^16, rounds to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    const rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1);
    return sign | (rounded >>> 13);
  }
  // Subnormal: the significand in units of 2^-24.
  const shift = 126 - (magnitude >>> 23);
  if (shift > 24) return sign;
  const significand = (magnitude & 0x7fffff) | 0x800000;
  const half = 1 << (shift - 1);
  const kept = significand >>> shift;
  const rest = significand & ((1 << shift) - 1);
  return sign | (kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0));
}
