/**
 * Proxy Hessians of linear layers: E[x x^T] over the calibration tokens (Q-Palette, section C; QuIP#, section 4.1).
 *
 * @module
 */
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";
import { factorHessian, type LdlqFactor } from "../../quantizers/ldlqFactor.ts";

/** A Hessian in the basis of the codes, made ready for rounding all weights that share its input. */
export interface PreparedHessian {
  /** float32 [columns, columns], symmetric, undamped, its mean diagonal 1. */
  readonly hessian: Float32Array;
  readonly factor: LdlqFactor;
}

export interface PrepareOptions {
  readonly blockColumns: number;
  /** As a share of the mean diagonal. */
  readonly damping: number;
  readonly activationOrder: boolean;
}

/** Completes, scales, rotates and factors sums of x^T x [columns, columns], of which the upper triangle is given. */
export function prepareHessian(
  sums: Float32Array,
  columns: number,
  rotation: Rotation | undefined,
  { blockColumns, damping, activationOrder }: PrepareOptions,
): PreparedHessian {
  const hessian = symmetric(sums, columns);
  if (rotation) {
    // R H R^T: rows, then what were the columns.
    rotation.apply(hessian);
    transpose(hessian, columns);
    rotation.apply(hessian);
  }
  const factor = factorHessian(hessian, columns, blockColumns, { damping, activationOrder });
  return { hessian, factor };
}

function symmetric(sums: Float32Array, n: number): Float32Array {
  const full = new Float32Array(n * n);
  let trace = 0;
  for (let i = 0; i < n; i++) trace += sums[i * n + i];
  const scale = trace > 0 ? n / trace : 0;
  for (let i = 0; i < n; i++) {
    for (let j = i; j < n; j++) {
      const value = sums[i * n + j] * scale;
      full[i * n + j] = value;
      full[j * n + i] = value;
    }
  }
  return full;
}

function transpose(a: Float32Array, n: number): void {
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      const value = a[i * n + j];
      a[i * n + j] = a[j * n + i];
      a[j * n + i] = value;
    }
  }
}
