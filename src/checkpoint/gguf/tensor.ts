import { readTarget } from "../byteSource.ts";
import type { Tensor } from "../checkpoint.ts";
import { CHUNK_BYTES } from "../denseTensor.ts";
import { rowLayout, rowTarget } from "../shape.ts";
import type { StoredTensor } from "./header.ts";

/** How Hugging Face stores a tensor that the file stores otherwise. */
export interface Arrangement {
  /** Hugging Face name. */
  readonly name: string;
  /**
   * Heads whose rows the file interleaves: its row 2j + s of a head is row s * (head size / 2) + j,
   * because llama.cpp rotates neighbours where Hugging Face rotates halves.
   */
  readonly interleavedHeads?: number;
  /** Added to each value. */
  readonly addend?: number;
}

/** A tensor of a GGUF file in Hugging Face's arrangement; rows are dequantized when asked for. */
export function ggufTensor(stored: StoredTensor, arrangement: Arrangement): Tensor {
  const { name, interleavedHeads, addend } = arrangement;
  const { shape, type, byteLength } = stored;
  const unchanged = interleavedHeads === undefined && addend === undefined;
  return {
    name,
    shape,
    encoding: type.name,
    byteLength,
    async readRows(start, end, target) {
      const { rowSize, out } = rowTarget(name, shape, start, end, target);
      if (interleavedHeads === undefined) await readElements(stored, start * rowSize, out);
      else await readInterleaved(stored, interleavedHeads, start, end, out);
      if (addend !== undefined) for (let i = 0; i < out.length; i++) out[i] += addend;
      return out;
    },
    readBytes: unchanged ? (target) => stored.source.read(stored.offset, byteLength, target) : undefined,
  };
}

/** Dequantizes `out.length` values from element `start` on, a chunk at a time. */
async function readElements(stored: StoredTensor, start: number, out: Float32Array): Promise<void> {
  const { blockSize, blockBytes, dequantize } = stored.type;
  const skipped = start % blockSize;
  if (skipped !== 0 || out.length % blockSize !== 0) {
    // Only parts of a quantized vector: rows of a matrix hold whole blocks.
    const whole = new Float32Array(Math.ceil((skipped + out.length) / blockSize) * blockSize);
    await readElements(stored, start - skipped, whole);
    out.set(whole.subarray(skipped, skipped + out.length));
    return;
  }
  const total = out.length / blockSize;
  const step = Math.min(total, Math.floor(CHUNK_BYTES / blockBytes));
  const scratch = new Uint8Array(step * blockBytes);
  let offset = stored.offset + (start / blockSize) * blockBytes;
  for (let done = 0; done < total; done += step) {
    const blocks = Math.min(step, total - done);
    const length = blocks * blockBytes;
    const bytes = await stored.source.read(offset, length, readTarget(length, scratch));
    dequantize(bytes, 0, out, done * blockSize, blocks);
    offset += length;
  }
}

/** Rows [start, end) in Hugging Face's order, a head at a time. */
async function readInterleaved(
  stored: StoredTensor,
  heads: number,
  start: number,
  end: number,
  out: Float32Array,
): Promise<void> {
  const { rows, rowSize } = rowLayout(stored.shape);
  const headRows = rows / heads;
  const half = headRows / 2;
  const head = new Float32Array(headRows * rowSize);
  for (let first = Math.floor(start / headRows) * headRows; first < end; first += headRows) {
    await readElements(stored, first * rowSize, head);
    const stop = Math.min(end, first + headRows);
    for (let row = Math.max(start, first); row < stop; row++) {
      const within = row - first;
      const from = (within < half ? 2 * within : 2 * (within - half) + 1) * rowSize;
      out.set(head.subarray(from, from + rowSize), (row - start) * rowSize);
    }
  }
}
