/**
 * Data-aware quantization of a decoder, a layer at a time: sums of its inputs, Hessians, LDLQ, and on with the
 * hidden states.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import type { StoredScheme } from "../../checkpoint/quantization.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { PreparedHessian } from "../calibrate/hessian.ts";
import { type InputGram, LayerPass } from "../calibrate/layerPass.ts";
import { type CalibrateOptions, DEFAULT_GRADIENT_TOKENS } from "../calibrate/options.ts";
import { tokenWeights } from "../calibrate/tokenWeights.ts";
import type { Sequences } from "../sequences.ts";
import { linearSpecs } from "../weights.ts";
import type { QuantizedRows } from "./job.ts";
import { pipeline } from "./pipeline.ts";
import type { TensorPlan } from "./plan.ts";
import type { Pool } from "./pool.node.ts";
import type { TensorStore } from "./store.node.ts";

/** Rows of a job: whole tiles, and enough of them for a factor's row to be worth its way to the cache. */
const JOB_ROWS = 64;

export interface CalibratedRun {
  readonly decoder: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly pool: Pool;
  readonly plan: TensorPlan;
  readonly sequences: Sequences;
  readonly options: CalibrateOptions;
  readonly signal?: AbortSignal;
  readonly store: Pick<TensorStore, "accept" | "finished" | "store" | "progress">;
}

/** Quantizes every planned weight of the decoder's layers. */
export async function quantizeLayers(run: CalibratedRun): Promise<void> {
  const { decoder, checkpoint, backend, sequences, signal, store } = run;
  const { compensation, sequential = !compensation } = run.options;
  const { gradientTokens = compensation ? 0 : DEFAULT_GRADIENT_TOKENS } = run.options;
  let guides: Promise<ReadonlyMap<string, Float32Array>> | undefined;
  // Not for what an earlier run did.
  const guide = () => {
    const progress = (done: number, total: number) =>
      store.progress("gradients", `${Math.floor((100 * done) / total)}%`);
    const options = {
      spec: decoder,
      checkpoint,
      backend,
      sequences,
      gradientTokens,
      signal,
      onProgress: progress,
    };
    guides ??= tokenWeights(options);
    return guides;
  };
  const pass = new LayerPass(decoder, checkpoint, backend, sequences);
  try {
    const hidden = await pass.embed(signal);
    for (let index = 0; index < decoder.layers.length; index++) {
      const names = weightsOf(decoder, index).filter((name) => run.plan.has(name));
      const last = index === decoder.layers.length - 1;
      let replaced = await finishedWeights(run, names);
      if (!replaced || !sequential) {
        store.progress("observe", `layer ${index}`);
        const layer = await pass.load(index);
        const advance = !sequential && !last;
        if (replaced) await pass.advance(layer, hidden, signal);
        else {
          const guided = gradientTokens > 0 ? await guide() : undefined;
          const grams = await pass.observe(layer, hidden, {
            advance,
            signal,
            compensation,
            tokenWeights: guided,
          });
          replaced = await quantizeLayer(run, grams);
        }
        pass.free(layer);
      }
      if (sequential && !last) {
        store.progress("advance", `layer ${index}`);
        const layer = await pass.load(index, replaced);
        await pass.advance(layer, hidden, signal);
        pass.free(layer);
      }
    }
  } finally {
    pass.dispose();
  }
}

/** Names of the weight tensors of a layer. */
export function weightsOf(decoder: DecoderSpec, index: number): string[] {
  const specs = linearSpecs({ ...decoder, layers: [decoder.layers[index]] });
  return [...new Set(specs.map(({ weight }) => weight))];
}

/** Quantizes a layer; returns the values that its weights now stand for. */
async function quantizeLayer(
  run: CalibratedRun,
  grams: readonly InputGram[],
): Promise<Map<string, Float32Array>> {
  const { pool, plan, options, signal } = run;
  // Weights of one input may still differ in their blocks or rotation.
  const hessians = new Map<string, Promise<PreparedHessian>>();
  const prepare = (gram: InputGram, stored: StoredScheme): Promise<PreparedHessian> => {
    const { blockColumns } = quantizerFor(parseScheme(stored.scheme));
    const key = `${grams.indexOf(gram)} ${blockColumns} ${stored.rotation}`;
    const { damping = 0.03, activationOrder = true } = options;
    const { sums, columns } = gram;
    const made =
      hessians.get(key) ??
      pool.run({
        kind: "prepare",
        sums,
        columns,
        rotation: stored.rotation,
        blockColumns,
        damping,
        activationOrder,
      });
    hessians.set(key, made);
    return made;
  };
  const values = new Map<string, Float32Array>();
  const weights = grams.flatMap((gram) =>
    gram.weights.flatMap((name) => {
      const stored = plan.get(name);
      return stored ? [{ name, stored, prepared: prepare(gram, stored) }] : [];
    }),
  );
  async function* parts() {
    for (const { name, stored, prepared } of weights) {
      const tensor = run.checkpoint.tensors.get(name)!;
      values.set(name, new Float32Array(stored.shape[0] * stored.shape[1]));
      for (let row = 0; row < stored.shape[0]; row += JOB_ROWS) {
        yield { name, stored, tensor, row, prepared: await prepared };
      }
    }
  }
  type Part = { name: string; stored: StoredScheme; tensor: Tensor; row: number; prepared: PreparedHessian };
  const round = async ({ stored, tensor, row, prepared }: Part) => {
    const [rows, columns] = stored.shape;
    const end = Math.min(rows, row + JOB_ROWS);
    const weights = await tensor.readRows(row, end);
    const { refit = true } = options;
    return pool.run({ kind: "ldlq", weights, rows: end - row, columns, stored, prepared, refit });
  };
  for await (const [{ name, stored, row }, part] of pipeline(parts(), 2 * pool.threads, round)) {
    values.get(name)!.set(part.decoded, row * stored.shape[1]);
    await run.store.store(name, row, part);
    signal?.throwIfAborted();
  }
  return values;
}

/** The values of a layer's weights when an earlier run finished all of them. */
async function finishedWeights(
  { store, pool, plan }: CalibratedRun,
  names: readonly string[],
): Promise<Map<string, Float32Array> | undefined> {
  const parts = new Map<string, QuantizedRows>();
  for (const name of names) {
    const part = await store.finished(name);
    if (!part) return undefined;
    parts.set(name, part);
  }
  const values = new Map<string, Float32Array>();
  for (const [name, part] of parts) {
    store.accept(name);
    const stored = plan.get(name)!;
    const { codes, scales } = part;
    values.set(name, await pool.run({ kind: "decode", codes, scales, columns: stored.shape[1], stored }));
  }
  return values;
}
