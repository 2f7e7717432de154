import { readTarget } from "./byteSource.ts";
import type { ByteSource, Tensor } from "./checkpoint.ts";
import { bytesOf, DTYPE_BYTES, type Dtype, toFloat32 } from "./dtype.ts";
import { elementCount, rowTarget } from "./shape.ts";

/** Stored bytes converted at once: bounds the scratch memory of a conversion. */
export const CHUNK_BYTES = 2 ** 20;

/**
 * A tensor stored row by row in one piece of a source. The caller has checked that
 * the shape's bytes lie inside the source.
 */
export function denseTensor(
  name: string,
  dtype: Dtype,
  shape: readonly number[],
  source: ByteSource,
  offset: number,
): Tensor {
  const size = DTYPE_BYTES[dtype];
  const byteLength = (elementCount(shape) ?? 0) * size;
  return {
    name,
    shape,
    encoding: dtype,
    byteLength,
    async readRows(start, end, target) {
      const { rowSize, out } = rowTarget(name, shape, start, end, target);
      await readFloats(source, offset + start * rowSize * size, dtype, out);
      return out;
    },
    readBytes(target) {
      return source.read(offset, byteLength, target);
    },
  };
}

/** Reads `out.length` elements stored from `offset` on, as float32. */
export async function readFloats(
  source: ByteSource,
  offset: number,
  dtype: Dtype,
  out: Float32Array,
): Promise<void> {
  if (dtype === "F32") {
    await source.read(offset, out.byteLength, bytesOf(out));
    return;
  }
  const size = DTYPE_BYTES[dtype];
  const step = CHUNK_BYTES / size;
  const scratch = new Uint8Array(Math.min(CHUNK_BYTES, out.length * size));
  for (let done = 0; done < out.length; done += step) {
    const part = out.subarray(done, done + step);
    const length = part.length * size;
    toFloat32(dtype, await source.read(offset + done * size, length, readTarget(length, scratch)), part);
  }
}
