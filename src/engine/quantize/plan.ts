/**
 * Which weights of a checkpoint are stored how.
 *
 * @module
 */
import { SLICE_ROWS } from "../../backends/backend.ts";
import type { Choice } from "../../budget/plan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import {
  fusedName,
  quantizationOf,
  type StoredPlace,
  type StoredScheme,
} from "../../checkpoint/quantization.ts";
import { UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { decoderFor } from "../../models/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { linearSpecs, sharedInputs, tieMissingHead } from "../weights.ts";

export interface QuantizeOptions {
  /** Of the linear layers, e.g. `nuq-4`. */
  readonly scheme: string;
  /** Of the embedding and the output head; a float scheme leaves them as they are. Default `uniform-8`. */
  readonly embeddingScheme?: string;
  /**
   * Schemes of single weights, by tensor name, in their place; weights that stand together are fused into one matrix.
   * Weights that it does not name take the schemes above.
   */
  readonly choice?: readonly Choice[];
  /** Rotate the inputs of quantized layers. Default true. */
  readonly rotate?: boolean;
  /** Of the rotations. Default 0. */
  readonly seed?: number;
}

const DEFAULT_EMBEDDING_SCHEME = "uniform-8";

/** A weight to quantize: how, and where its rows go. */
export type PlannedWeight = StoredScheme & { readonly place: StoredPlace };

/** By tensor name. Tensors that it does not name stay as they are. */
export type TensorPlan = ReadonlyMap<string, PlannedWeight>;

/** The decoder that will run a checkpoint. Throws a UsageError when the checkpoint is quantized already. */
export function floatDecoder(checkpoint: Checkpoint): DecoderSpec {
  if (quantizationOf(checkpoint)) {
    throw new UsageError(`${checkpoint.source}: is quantized already; start from the float model`);
  }
  const { source, config, tensors } = checkpoint;
  return tieMissingHead(decoderFor(source, config, tensors), checkpoint);
}

/** Weight tensors that may be fused: those of a block that multiply the same input. */
export function fusionGroups(decoder: DecoderSpec): string[][] {
  return sharedInputs(decoder).map((group) => [...new Set(group.map(({ weight }) => weight))]);
}

/** Which tensors of a checkpoint will be stored how. */
export function planTensors(checkpoint: Checkpoint, options: QuantizeOptions): TensorPlan {
  const decoder = floatDecoder(checkpoint);
  const { rotate = true, seed = 0, embeddingScheme = DEFAULT_EMBEDDING_SCHEME, choice = [] } = options;
  const sets = new Map<string, Choice>();
  const weights = new Set(
    [...linearSpecs(decoder), decoder.embedding, decoder.head].map(({ weight }) => weight),
  );
  for (const set of choice) {
    for (const name of set.layers) {
      if (!weights.has(name) || sets.has(name)) {
        const problem = sets.has(name) ? `the plan names ${name} twice` : `has no linear layer ${name}`;
        throw new UsageError(`${checkpoint.source}: ${problem}; plan this model anew`);
      }
      sets.set(name, set);
    }
  }
  const groups = fusionGroups(decoder);
  const plan = new Map<string, PlannedWeight>();
  const add = (weight: string, general: string) => {
    if (plan.has(weight) || !checkpoint.tensors.has(weight)) return;
    const { layers, option } = sets.get(weight) ?? { layers: [weight], option: general };
    if (parseScheme(option).family === "float") return;
    const rotation = rotate ? seed : null;
    const parts = layers.map((name) => {
      const [rows, columns] = checkpoint.tensors.get(name)!.shape;
      return { name, rows, columns };
    });
    checkFusible(parts, groups);
    const { columns } = parts[0];
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    const name = parts.length > 1 ? fusedName(layers) : weight;
    const fused =
      parts.length > 1 ? { parts: parts.map((part) => ({ name: part.name, rows: part.rows })) } : {};
    const stored: StoredScheme = { scheme: option, shape: [rows, columns], rotation, ...fused };
    let firstRow = 0;
    for (const part of parts) {
      const place = { name, stored, firstRow };
      plan.set(part.name, { scheme: option, shape: [part.rows, columns], rotation, place });
      firstRow += part.rows;
    }
  };
  for (const { weight } of linearSpecs(decoder)) add(weight, options.scheme);
  for (const { weight } of [decoder.embedding, decoder.head]) add(weight, embeddingScheme);
  return plan;
}

/** What the file will hold: each stored weight once, fused ones whole. */
export function storedWeights(plan: TensorPlan): Map<string, StoredScheme> {
  return new Map(Array.from(plan.values(), ({ place }) => [place.name, place.stored]));
}

/** Whether rows of a tensor can stand below those of another in one matrix. */
export function isSliceable(rows: number): boolean {
  return rows % SLICE_ROWS === 0;
}

function checkFusible(
  parts: readonly { readonly name: string; readonly rows: number }[],
  groups: readonly (readonly string[])[],
): void {
  if (parts.length < 2) return;
  const names = parts.map(({ name }) => name);
  if (!groups.some((group) => names.every((name) => group.includes(name)))) {
    throw new UsageError(`${names.join(" and ")} do not share an input and cannot be fused; plan them apart`);
  }
  const odd = parts.find(({ rows }) => !isSliceable(rows));
  if (odd) {
    throw new UsageError(
      `${odd.name} has ${odd.rows} rows, no multiple of ${SLICE_ROWS}, and cannot be fused; plan it apart`,
    );
  }
}
