/**
 * Random orthogonal rotations that make weights Gaussian (QuIP#'s and Q-Palette's incoherence processing).
 *
 * @module
 */
import { UsageError } from "../../errors.ts";
import { randomWord } from "../random.ts";
import { type HadamardPlan, planHadamard } from "./plan.ts";

/** The rotation R = H diag(signs) / sqrt(block), orthonormal. Its data say all that a backend needs to apply it. */
export interface Rotation extends HadamardPlan {
  readonly seed: number;
  /** +-1, one per input element. */
  readonly signs: Int8Array;
  /** 1 / sqrt(size / blocks). */
  readonly scale: number;
  /** x [tokens, size] <- x R^T, that is R applied to every row, in place. */
  apply(x: Float32Array): void;
  /** x [tokens, size] <- x R, which undoes {@link apply}, in place. */
  inverse(x: Float32Array): void;
}

/**
 * The rotation of a size and seed. Sign i is the top bit of word i of the stream `seed` (see random.ts):
 * set means -1.
 */
export function rotationFor(size: number, seed: number): Rotation {
  if (!Number.isSafeInteger(size) || size < 1 || size > 2 ** 24) {
    throw new UsageError(`a rotation of size ${size} does not exist; the size is a width from 1 to 2^24`);
  }
  const plan = planHadamard(size);
  const signs = Int8Array.from({ length: size }, (_, i) => (randomWord(seed, i) >>> 31 ? -1 : 1));
  const scale = 1 / Math.sqrt(size / plan.blocks);
  const flip = (row: Float32Array) => {
    for (let i = 0; i < size; i++) row[i] *= signs[i] * scale;
  };
  return {
    ...plan,
    seed,
    signs,
    scale,
    apply(x) {
      const scratch = new Float32Array(plan.bases.length > 0 ? size / plan.blocks : 0);
      for (const row of rowsOf(x, size)) {
        flip(row);
        transform(row, plan, scratch, false);
      }
    },
    inverse(x) {
      const scratch = new Float32Array(plan.bases.length > 0 ? size / plan.blocks : 0);
      for (const row of rowsOf(x, size)) {
        transform(row, plan, scratch, true);
        flip(row);
      }
    },
  };
}

/** W R^T for W [rows, columns], so that y = W x = (W R^T)(R x). */
export function rotateRows(
  weights: Float32Array,
  rows: number,
  columns: number,
  rotation: Rotation,
): Float32Array {
  if (weights.length !== rows * columns || rotation.size !== columns) {
    const shape = `[${rows}, ${columns}] (${weights.length} values)`;
    throw new UsageError(`a rotation of size ${rotation.size} does not fit weights ${shape}`);
  }
  const rotated = weights.slice();
  rotation.apply(rotated);
  return rotated;
}

function* rowsOf(x: Float32Array, size: number): Generator<Float32Array> {
  if (x.length % size !== 0) {
    throw new UsageError(`${x.length} values are not whole rows of the rotation's size ${size}`);
  }
  for (let at = 0; at < x.length; at += size) yield x.subarray(at, at + size);
}

/** row <- H row (or H^T row), unscaled. */
function transform(row: Float32Array, plan: HadamardPlan, scratch: Float32Array, transposed: boolean): void {
  const length = row.length / plan.blocks;
  for (let start = 0; start < row.length; start += length) {
    const block = row.subarray(start, start + length);
    walshHadamard(block, plan.stages);
    let stride = 2 ** plan.stages;
    for (const { order, matrix } of plan.bases.toReversed()) {
      applyBase(block, order, matrix, stride, scratch, transposed);
      stride *= order;
    }
  }
}

/** Fast Walsh-Hadamard transform of every run of 2^stages elements. */
function walshHadamard(x: Float32Array, stages: number): void {
  for (let half = 1; half < 2 ** stages; half *= 2) {
    for (let start = 0; start < x.length; start += 2 * half) {
      for (let i = start; i < start + half; i++) {
        const a = x[i];
        const b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
  }
}

/** Multiplies the dimension of `order` elements that lie `stride` apart. */
function applyBase(
  x: Float32Array,
  order: number,
  matrix: Int8Array,
  stride: number,
  scratch: Float32Array,
  transposed: boolean,
): void {
  scratch.set(x);
  const rowStep = transposed ? 1 : order;
  const columnStep = transposed ? order : 1;
  for (let start = 0; start < x.length; start += order * stride) {
    for (let i = 0; i < order; i++) {
      const to = start + i * stride;
      x.fill(0, to, to + stride);
      for (let j = 0; j < order; j++) {
        const sign = matrix[i * rowStep + j * columnStep];
        const from = start + j * stride;
        for (let t = 0; t < stride; t++) x[to + t] += sign * scratch[from + t];
      }
    }
  }
}
