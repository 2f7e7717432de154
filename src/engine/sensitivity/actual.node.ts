import { availableParallelism } from "node:os";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { floatSchemeFor } from "../model.ts";
import type { QuantizedRows } from "../quantize/job.ts";
import { createPool, type Pool } from "../quantize/pool.node.ts";
import { longestOf } from "../sequences.ts";
import { loadWeights } from "../weights.ts";
import { openCache } from "./cache.node.ts";
import { progressOf } from "./measure.ts";
import { requestOf, wordsOf } from "./request.ts";
import { type SensitivityRun, withSequences } from "./sensitivities.node.ts";
import { type WeightTensor, weightTensors } from "./tensors.ts";
import { Trials } from "./trials.ts";

/** As the planner's problem takes it in `measured`. */
export interface ActualLoss {
  /** Hugging Face name of the tensor. */
  readonly layer: string;
  readonly option: string;
  /**
   * Kullback-Leibler divergence from the float model, nats per token, with this tensor alone quantized. Around a scheme:
   * an even share of the divergence of the model that has that scheme everywhere, and what this tensor changes of it.
   */
  readonly loss: number;
}

export interface ActualRun extends SensitivityRun {
  /** Scheme of all other tensors, as in the paper; default none, they stay float. */
  readonly around?: string;
}

/**
 * What every scheme does to every weight tensor, by quantizing it and running the model (Q-Palette, section E.1, the
 * `actual` loss): exact where the linearity theorem is not, at one run of the model from the tensor's layer on for each
 * pair. Cached and resumable as `sensitivities` are; `method` and `norms` mean nothing here.
 * Throws a UsageError for schemes that do not quantize.
 */
export async function actualLosses(
  checkpoint: Checkpoint,
  schemes: readonly string[],
  run: ActualRun = {},
): Promise<ActualLoss[]> {
  if (schemes.length === 0) throw new UsageError("there are no schemes to measure; give at least one");
  const { around } = run;
  for (const scheme of around === undefined ? schemes : [...schemes, around])
    quantizerFor(parseScheme(scheme));
  const request = requestOf(checkpoint, run);
  const { spec } = request;
  const tensors = weightTensors(spec);
  const pairs = tensors.flatMap((tensor) => schemes.map((scheme) => ({ tensor, scheme })));
  const { method: _, norms: __, ...words } = wordsOf(request);
  const names = pairs.map(({ tensor, scheme }) => `${tensor.name} ${scheme}`);
  const cache = await openCache(checkpoint, { ...words, schemes, around }, names, run.cacheFolder);
  if (cache.parts.length < request.sequences) {
    await withSequences(checkpoint, request, run, async (backend, sequences) => {
      const pool = createPool(run.threads ?? availableParallelism());
      const report = progressOf("measure", 0, run.onProgress);
      const weights = await loadWeights(spec, checkpoint, backend, floatSchemeFor(spec));
      const longest = longestOf(sequences);
      const trials = new Trials(spec, backend, weights, longest);
      try {
        const decode = async (pair: Pair, codes: QuantizedRows) =>
          pool.run({ kind: "decode", ...codes, ...stored(pair.tensor, pair.scheme) });
        if (around !== undefined) {
          const changes = tensors.map(async (tensor) => {
            const pair = { tensor, scheme: around };
            return { tensor, values: await decode(pair, await quantized(pool, checkpoint, pair)) };
          });
          await trials.around(await Promise.all(changes));
        }
        const codes = await Promise.all(pairs.map((pair) => quantized(pool, checkpoint, pair)));
        const first = cache.parts.length;
        const total = (sequences.length - first) * pairs.length;
        let done = 0;
        for (const ids of sequences.slice(first)) {
          await trials.start(ids);
          const before = around === undefined ? 0 : await trials.divergence([]);
          const values: number[] = [];
          for (const [i, pair] of pairs.entries()) {
            run.signal?.throwIfAborted();
            const change = { tensor: pair.tensor, values: await decode(pair, codes[i]) };
            values.push((await trials.divergence([change])) - before + before / tensors.length);
            report(++done, total);
          }
          await cache.add({ tokens: ids.length, values });
        }
      } finally {
        trials.dispose();
        await pool.close();
      }
    });
  }
  const tokens = cache.parts.reduce((sum, part) => sum + part.tokens, 0);
  return pairs.map(({ tensor, scheme }, i) => {
    const sum = cache.parts.reduce((total, part) => total + part.tokens * part.values[i], 0);
    return { layer: tensor.name, option: scheme, loss: sum / tokens };
  });
}

interface Pair {
  readonly tensor: WeightTensor;
  readonly scheme: string;
}

async function quantized(
  pool: Pool,
  checkpoint: Checkpoint,
  { tensor, scheme }: Pair,
): Promise<QuantizedRows> {
  const { name, rows } = tensor;
  const weights = await checkpoint.tensors.get(name)!.readRows(0, rows);
  return pool.run({ kind: "round", weights, rows, ...stored(tensor, scheme) });
}

function stored({ columns }: WeightTensor, scheme: string) {
  return { columns, stored: { scheme, rotation: 0 } };
}
