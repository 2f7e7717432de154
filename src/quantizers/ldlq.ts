/**
 * Block LDLQ: rounding that makes later columns cancel the output error of earlier ones (QuIP#, section 4.1;
 * Q-Palette, section C).
 *
 * With H = L D L^T and E = W - Q, the proxy loss tr(E H E^T) is the D-weighted square of E L. Blocks are rounded from
 * the last to the first, each after adding the errors so far: W_k + sum over j > k of E_j L_jk; column block k of
 * E L is then just its rounding error.
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import type { LdlqFactor } from "./ldlqFactor.ts";
import { type EncodeOptions, type QuantizedMatrix, type Quantizer, rowScales } from "./quantizer.ts";

/** Rows rounded together: their part of the weights stays in the cache while the factor streams by. */
const CHUNK_ROWS = 64;
/** Columns whose errors are applied to all earlier columns in one pass. */
const PANEL_COLUMNS = 128;

/** Rounds weights [rows, columns] against the proxy Hessian that `factor` was made from. */
export function ldlq(
  quantizer: Quantizer,
  weights: Float32Array,
  rows: number,
  columns: number,
  factor: LdlqFactor,
  options: EncodeOptions = {},
): QuantizedMatrix {
  if (factor.columns !== columns || factor.blockColumns % quantizer.blockColumns !== 0) {
    throw new UsageError(
      `a Hessian factored for ${factor.columns} columns in blocks of ${factor.blockColumns} ` +
        `does not fit ${quantizer.scheme.name} on ${columns} columns`,
    );
  }
  const scales = options.scales ?? rowScales(quantizer, weights, rows, columns);
  const codes = new Uint8Array(quantizer.codesByteLength(rows, columns));
  const chunk = Math.ceil(CHUNK_ROWS / quantizer.blockRows) * quantizer.blockRows;
  for (let start = 0; start < rows; start += chunk) {
    const count = Math.min(chunk, rows - start);
    const from = quantizer.codesByteLength(start, columns);
    const to = quantizer.codesByteLength(start + count, columns);
    const part = weights.subarray(start * columns, (start + count) * columns);
    roundRows(quantizer, part, scales.subarray(start, start + count), factor, codes.subarray(from, to));
  }
  return { scheme: quantizer.scheme.name, rows, columns, codes, scales };
}

/** tr((W - Q) H (W - Q)^T) for weights and their reconstruction [rows, columns]. */
export function proxyLoss(
  weights: Float32Array,
  decoded: Float32Array,
  hessian: Float32Array | Float64Array,
  rows: number,
  columns: number,
): number {
  const error = new Float64Array(columns);
  let loss = 0;
  for (let row = 0; row < rows; row++) {
    for (let c = 0; c < columns; c++) error[c] = weights[row * columns + c] - decoded[row * columns + c];
    for (let i = 0; i < columns; i++) {
      let sum = 0;
      for (let j = 0, at = i * columns; j < columns; j++) sum += hessian[at + j] * error[j];
      loss += error[i] * sum;
    }
  }
  return loss;
}

function roundRows(
  quantizer: Quantizer,
  weights: Float32Array,
  scales: Float32Array,
  { columns, blocks, feedback }: LdlqFactor,
  codes: Uint8Array,
): void {
  const rows = scales.length;
  // By position, at unit scale: the weights, and the weights with the feedback so far.
  const original = gather(weights, scales, blocks, columns);
  const target = original.slice();
  const values = new Float32Array(rows * Math.max(...blocks.map(({ width }) => width)));
  const errors = new Float32Array(rows * columns);
  let end = columns;
  let panelEnd = columns;
  for (let index = blocks.length - 1; index >= 0; index--) {
    const { column, width } = blocks[index];
    const start = end - width;
    const panelStart = Math.max(0, panelEnd - PANEL_COLUMNS);
    const block = values.subarray(0, rows * width);
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < width; i++) block[row * width + i] = target[row * columns + start + i];
    }
    quantizer.encodeColumns(block, rows, column, width, codes, columns);
    for (let row = 0; row < rows; row++) {
      for (let i = 0, at = row * columns + start; i < width; i++) {
        errors[at + i] = original[at + i] - block[row * width + i];
      }
    }
    addFeedback(target, errors, feedback, columns, rows, start, end, panelStart, start);
    if (index > 0 && start - blocks[index - 1].width < panelStart) {
      // The panel is full: everything before it gets its feedback in one pass.
      addFeedback(target, errors, feedback, columns, rows, start, panelEnd, 0, panelStart);
      panelEnd = start;
    }
    end = start;
  }
}

/** target[:, to range) += errors[:, from range) . L[from range, to range). */
function addFeedback(
  target: Float32Array,
  errors: Float32Array,
  feedback: Float32Array,
  columns: number,
  rows: number,
  fromStart: number,
  fromEnd: number,
  toStart: number,
  toEnd: number,
): void {
  for (let row = 0; row < rows; row++) {
    const at = row * columns;
    let j = fromStart;
    for (; j + 4 <= fromEnd; j += 4) {
      const [e0, e1, e2, e3] = [errors[at + j], errors[at + j + 1], errors[at + j + 2], errors[at + j + 3]];
      const l0 = j * columns;
      const l1 = l0 + columns;
      const l2 = l1 + columns;
      const l3 = l2 + columns;
      for (let k = toStart; k < toEnd; k++) {
        target[at + k] +=
          e0 * feedback[l0 + k] + e1 * feedback[l1 + k] + e2 * feedback[l2 + k] + e3 * feedback[l3 + k];
      }
    }
    for (; j < fromEnd; j++) {
      const e = errors[at + j];
      for (let k = toStart, l = j * columns; k < toEnd; k++) target[at + k] += e * feedback[l + k];
    }
  }
}

function gather(
  weights: Float32Array,
  scales: Float32Array,
  blocks: LdlqFactor["blocks"],
  columns: number,
): Float32Array {
  const ordered = new Float32Array(weights.length);
  for (let row = 0; row < scales.length; row++) {
    let to = row * columns;
    for (const { column, width } of blocks) {
      for (let i = 0; i < width; i++) ordered[to++] = weights[row * columns + column + i] / scales[row];
    }
  }
  return ordered;
}
