/**
 * What residual rows would do for a model, and what they would take on this machine.
 *
 * @module
 */
import { availableParallelism } from "node:os";
import type { Backend } from "../../backends/backend.ts";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { residualGroups, rowLayoutOf } from "../../compensation/groups.ts";
import { channelsOf } from "../../compensation/settings.ts";
import type { MeasuredCosts } from "../../compensation/tuner.ts";
import { policyOf } from "../../mapping/policyMap.ts";
import { findPolicy, originHere } from "../../mapping/store.node.ts";
import { openWasm } from "../../ops/wasm.ts";
import { distortions } from "../../quantizers/distortions.ts";
import { randomFiller } from "../../quantizers/randomMatrix.ts";
import type { ResidualBits } from "../../quantizers/residual.ts";
import { layerInputs } from "../calibrate/layerInputs.ts";
import { LayerPass } from "../calibrate/layerPass.ts";
import { planTensors } from "../quantize/plan.ts";
import { Residuals } from "../residuals.ts";
import { Runner } from "../runner.ts";
import { requestOf } from "../sensitivity/request.ts";
import { withSequences } from "../sensitivity/sensitivities.node.ts";
import type { Sequences } from "../sequences.ts";
import { measureCosts } from "../tuneCompensation.ts";
import { loadWeights } from "../weights.ts";
import { plannableModel } from "./layers.ts";
import { randomCheckpoint } from "./randomCheckpoint.ts";
import { ROW_LEVELS, type RowFacts } from "./rows.ts";

export interface RowFactsRun {
  /** Texts like those the model will see; default what it samples from itself. */
  readonly texts?: readonly string[];
  /** Of a residual value. Default 4. */
  readonly bits?: ResidualBits;
  /** Default all cores. */
  readonly threads?: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Sequences of 256 tokens that tell how a layer's inputs are spread over its channels. */
const SEQUENCES = 8;
/** Positions that steps are timed at. */
const CONTEXT = 64;
/** What a typical plan has. */
const TYPICAL = "nuq-4";

export async function measureRowFacts(checkpoint: Checkpoint, run: RowFactsRun = {}): Promise<RowFacts> {
  const { texts, bits = 4, threads = availableParallelism(), onProgress, signal } = run;
  const request = requestOf(checkpoint, { texts, sequences: SEQUENCES });
  let layers: RowFacts["layers"] = new Map();
  await withSequences(checkpoint, request, { threads, signal }, async (backend, sequences) => {
    layers = await sharesLeft(checkpoint, backend, sequences, bits, signal);
  });
  const { map } = await findPolicy(originHere(threads), undefined);
  const backend = await openWasm({ threads, spawn: spawnNodeWorker, policy: map && policyOf(map) });
  try {
    const costs = await rowCosts(checkpoint, backend, bits, { onProgress, signal });
    return { bits, costs, layers };
  } finally {
    backend.dispose();
  }
}

/**
 * An error that does not depend on the channel loses as much of its energy as the chosen channels have of the input's,
 * except for what the residual's own codes leave. Tokens count alike.
 */
async function sharesLeft(
  checkpoint: Checkpoint,
  backend: Backend,
  sequences: Sequences,
  bits: ResidualBits,
  signal?: AbortSignal,
): Promise<RowFacts["layers"]> {
  const { decoder } = plannableModel(checkpoint);
  const coarse = bits === 16 ? 0 : distortions[`uniform-${bits}`];
  const sums = new Map<string, { left: Float64Array; tokens: number }>();
  const pass = new LayerPass(decoder, checkpoint, backend, sequences);
  try {
    const hidden = await pass.embed(signal);
    for (let index = 0; index < decoder.layers.length; index++) {
      const layer = await pass.load(index);
      const see = (weights: readonly string[], inputs: Float32Array) => {
        const [name] = weights;
        const { columns } = [...layer.names].find(([, weight]) => weight === name)![0];
        const sum = sums.get(name) ?? { left: new Float64Array(ROW_LEVELS.length), tokens: 0 };
        for (const weight of weights) sums.set(weight, sum);
        for (let at = 0; at < inputs.length; at += columns) {
          addLeft(inputs.subarray(at, at + columns), sum.left);
          sum.tokens++;
        }
      };
      await layerInputs(pass, layer, hidden, see, signal);
      pass.free(layer);
    }
  } finally {
    pass.dispose();
  }
  const kinds = residualGroups(decoder, () => true).flatMap(({ kind, members }) =>
    members.map(({ weight }) => [weight, kind] as const),
  );
  return new Map(
    kinds.map(([weight, kind]) => {
      const { left, tokens } = sums.get(weight)!;
      const shares = Array.from(left, (sum) => sum / tokens);
      return [weight, { kind, left: shares.map((share) => share + coarse * (1 - share)) }];
    }),
  );
}

/** Adds the share of an input's energy that its largest channels leave, at each level. */
function addLeft(input: Float32Array, left: Float64Array): void {
  const energies = input.map((x) => x * x).sort();
  const levels = ROW_LEVELS.map((level) => energies.length - channelsOf(energies.length, level));
  let sum = 0;
  const below = new Float64Array(energies.length + 1);
  for (let i = 0; i < energies.length; i++) below[i + 1] = sum += energies[i];
  levels.forEach((count, i) => {
    left[i] += sum > 0 ? below[count] / sum : 1;
  });
}

/** Times a model of these shapes with a residual of these shapes, all of it random. */
async function rowCosts(
  checkpoint: Checkpoint,
  backend: Backend,
  bits: ResidualBits,
  { onProgress, signal }: Pick<RowFactsRun, "onProgress" | "signal">,
): Promise<MeasuredCosts> {
  const { decoder } = plannableModel(checkpoint);
  const fill = randomFiller();
  const plan = planTensors(checkpoint, { scheme: TYPICAL });
  const weights = await loadWeights(decoder, randomCheckpoint(checkpoint, plan, fill), backend, "f32");
  const groups = residualGroups(decoder, () => true).map((group) => {
    const { offsets, stride } = rowLayoutOf(group, bits);
    const members = group.members.map(({ rows }, i) => {
      return { rows, offset: offsets[i], scales: new Float32Array(rows).fill(1e-4) };
    });
    const read = async (target: Uint8Array) => fill(target);
    return { group, source: { bits, columns: group.columns, stride, members, read } };
  });
  const residuals = await Residuals.load({ bits, groups, close: async () => {} }, backend);
  const runner = new Runner(decoder, { ...weights, residuals }, backend, {
    ...{ sequences: 1, context: Math.min(CONTEXT, decoder.contextLength), chunk: 1 },
    reading: { activations: "int8" },
  });
  const { costs } = await measureCosts(runner, { onProgress, signal });
  return costs;
}
