import { availableParallelism } from "node:os";
import { availableSimd } from "../backends/wasm/module.ts";
import { nodeRowFetcher, spawnNodeWorker } from "../backends/wasm/workers.node.ts";
import type { ResidualPlace } from "../compensation/residualFile.ts";
import { formatShares, parseShare } from "../compensation/settings.ts";
import { breather } from "../engine/breathe.ts";
import { Model } from "../engine/model.ts";
import { productShapes } from "../engine/productShapes.ts";
import { requireResidual, tuneCompensation } from "../engine/tuneCompensation.ts";
import { UsageError } from "../errors.ts";
import type { PolicyMap, PolicyShape } from "../mapping/policyFile.ts";
import { policyOf } from "../mapping/policyMap.ts";
import { enumerate, show, wasmUnits } from "../mapping/space.ts";
import { keepPolicy, originHere } from "../mapping/store.node.ts";
import { type TunedShape, tune } from "../mapping/tune.ts";
import { load } from "../node.ts";
import type { LinearPolicy } from "../ops/linear/policy.ts";
import { openWasm } from "../ops/wasm.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { checkWritable, writeJsonFile } from "./files.ts";
import type { tuneFlags } from "./flags.ts";
import { formatSeconds, significant } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { openModel, withHubProgress } from "./model.ts";
import { print, printJson, table } from "./output.ts";
import { during, withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** Positions that steps are timed at. */
const TUNING_CONTEXT = 64;

/** Precisions of activations that steps may ask for. */
const ACTIVATION_BITS = [8, 4] as const;

/** `halftone tune`: times every strategy for every shape of a model and keeps which is fastest. */
export async function tuneVerb({ operands: [name], flags }: Invocation<typeof tuneFlags>): Promise<void> {
  const threads = flags.threads ?? availableParallelism();
  const slowdown = flags.slowdown === undefined ? undefined : parseShare(flags.slowdown, "--slowdown");
  await checkWritable(flags.output, "-o");
  const place = { store: flags.residualStore };
  const shapes = await shapesOf(name, slowdown === undefined ? false : place);
  if (flags.explain) await explain(shapes, flags.json ? printAside : print);
  const open = (policy: LinearPolicy) =>
    openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true, policy });
  const measured = await withProgress("tuning", (line) =>
    tune(shapes, open, {
      activationBits: ACTIVATION_BITS,
      onProgress: (done, total, { n, k, scheme }) => line.update(done, total, `${scheme} ${n} x ${k}`),
      signal: interruptible(),
      breathe: breather(),
    }),
  );
  const origin = { version: 1, ...originHere(threads), shapes: measured } as const;
  const compensated =
    slowdown === undefined ? undefined : await tuneChannels(name, threads, slowdown, origin, place);
  const map: PolicyMap = { ...origin, ...(compensated && { compensation: [compensated.entry] }) };
  if (flags.output !== undefined) await writeJsonFile(flags.output, map, "-o");
  const kept = flags.output ?? (await keepPolicy(map));
  if (flags.json) return printJson(map);
  await print(
    `${table(["shape", "weights", "activations", "strategy by tokens"], measured.map(rowOf))}${compensated?.text ?? ""}${kept}\n`,
  );
}

/** Times compensation with the strategies just found; the entry of the map, and how to tell it. */
async function tuneChannels(
  name: string,
  threads: number,
  slowdown: number,
  map: PolicyMap,
  compensation: ResidualPlace,
) {
  const policy = policyOf(map);
  const checkpoint = await openModel(name);
  const backend = await openWasm({
    ...{ threads, spawn: spawnNodeWorker, wholeTeam: true },
    ...{ fetchRows: nodeRowFetcher, policy },
  });
  try {
    const model = await Model.load(checkpoint, backend, { context: TUNING_CONTEXT, compensation });
    const { channels, readers, seconds, secondsWithout } = await withProgress("tuning compensation", (line) =>
      tuneCompensation(model, { slowdown, onProgress: line.update, signal: interruptible() }),
    );
    await model.weights.residuals?.close();
    // Other programs may have slowed down the steps without.
    const cost = `${(100 * Math.max(0, seconds / secondsWithout - 1)).toFixed(1)}% slower`;
    const reading = readers === undefined ? "" : `; threads that read rows: ${readers} of ${threads}`;
    return {
      entry: { layers: model.weights.residuals!.key, slowdown, channels: { ...channels }, readers },
      text: `compensated channels of 1024: ${formatShares(channels)}; ${cost}${reading}\n`,
    };
  } finally {
    backend.dispose();
    await checkpoint.close();
  }
}

/** What there is to measure; refuses a model without a residual that is to be compensated, before anything takes time. */
async function shapesOf(name: string, compensation: false | ResidualPlace): Promise<TunedShape[]> {
  const model = await withHubProgress(name, (hub) =>
    during(`loading ${name} ...`, () => load(name, { threads: 1, context: 1, compensation, hub })),
  );
  try {
    if (compensation) requireResidual(model);
    const shapes = productShapes(model.weights).filter(
      ({ scheme }) => parseScheme(scheme).family !== "float",
    );
    if (shapes.length > 0) return shapes;
    throw new UsageError(
      `${name}: has no quantized weights, so there is nothing to choose; halftone quantize it first`,
    );
  } finally {
    model.dispose();
  }
}

/** `[576, 1536]  nuq-4  8 bits  padding to 7, padding-decoded` */
function rowOf({ n, k, scheme, activationBits, points }: PolicyShape): string[] {
  const runs: { choice: string; last: number }[] = [];
  for (const { m, choice } of points) {
    if (runs.at(-1)?.choice === choice) runs.at(-1)!.last = m;
    else runs.push({ choice, last: m });
  }
  const [first, last] = [points[0], points.at(-1)!];
  const text = runs
    .map((run, i) => (i + 1 < runs.length ? `${run.choice} to ${run.last}` : run.choice))
    .join(", ");
  const times = `${formatMicroseconds(first)} at ${first.m}, ${formatMicroseconds(last)} at ${last.m}`;
  return [`[${n}, ${k}]`, scheme, `${activationBits} bits`, `${text} (${times})`];
}

function formatMicroseconds({ seconds, choice }: PolicyShape["points"][number]): string {
  const time = seconds[choice]!;
  return time < 1 ? `${significant(1e6 * time)} us` : formatSeconds(time);
}

/** stdout is for the document of --json. */
async function printAside(text: string): Promise<void> {
  process.stderr.write(text);
}

/** Every pair of partitions of the model's bits, those with a kernel first, then the cheapest. */
async function explain(shapes: readonly TunedShape[], write: (text: string) => Promise<void>): Promise<void> {
  const bits = [...new Set(shapes.map(({ scheme }) => Math.ceil(parseScheme(scheme).bits)))].sort();
  for (const weightBits of bits) {
    for (const activationBits of ACTIVATION_BITS) {
      const units = wasmUnits(availableSimd() ?? "plain", activationBits);
      const rows = enumerate(weightBits, activationBits, units).map((each) => [
        show(each),
        each.unit.name,
        String(each.products),
        each.instructions.toFixed(1),
        each.pruned === undefined ? each.strategy : `pruned: ${each.pruned}`,
      ]);
      const header = ["weights x activations", "unit", "products", "instructions", "strategy"];
      const title = `${weightBits}-bit weights, ${activationBits}-bit activations (instructions for 16 weights by a token)`;
      await write(`${title}\n${table(header, rows, ["products", "instructions"])}\n`);
    }
  }
}
