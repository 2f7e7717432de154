import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { type Frontier, frontier } from "../engine/planning/frontier.ts";
import { Planner } from "../engine/planning/planner.ts";
import { UsageError } from "../errors.ts";
import { costsOf, layerFacts, modelToRound, paletteOf } from "./budget.ts";
import { calibrationText } from "./calibrationText.ts";
import { checkWritable, readTextFile, writeTextFile } from "./files.ts";
import type { planFlags } from "./flags.ts";
import { formatBytes, significant } from "./format.ts";
import type { MeasuredPoint } from "./frontierPlot.ts";
import { interruptible } from "./interrupt.ts";
import { openModel } from "./model.ts";
import { print, printJson, remark, table } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

type Flags = Invocation<typeof planFlags>["flags"];

/** Plans of each kind. */
const COUNT = 16;
/** Where perplexity is measured, of mixes and of single schemes. */
const MEASURED_BITS = [2.25, 2.5, 3, 3.25, 3.5, 4];

/** `halftone plan MODEL --frontier`: what every budget can buy. */
export async function planFrontier(name: string, flags: Flags): Promise<void> {
  const { bits, memory, speed, embeddingScheme, batch } = flags;
  if (bits !== undefined || memory !== undefined || speed !== undefined || flags.output !== undefined) {
    throw new UsageError(
      "--frontier is over all budgets and makes no plan; leave out --bits, --memory, --speed and -o",
    );
  }
  if (flags.rows !== undefined)
    throw new UsageError("--rows belongs to one plan; leave it out of --frontier");
  const text = flags.measure === undefined ? undefined : await readTextFile(flags.measure, "--measure");
  await checkWritable(flags.plot, "--plot");
  const checkpoint = await openModel(name);
  try {
    const measures = flags.sensitivities === undefined || text !== undefined;
    const rounded = measures ? await modelToRound(checkpoint, flags) : checkpoint;
    const facts = await layerFacts(rounded, flags);
    const costs = await costsOf(checkpoint, flags);
    const palette = paletteOf(flags.schemes);
    const planner = new Planner(checkpoint, { ...facts, palette, embeddingScheme, costs });
    const found = await withProgress("planning", (line) =>
      frontier(planner, { count: COUNT, batch }, line.update),
    );
    const measured = text === undefined ? [] : await measureAll(rounded, planner, text, flags);
    if (flags.plot !== undefined) {
      const { frontierPlot } = await import("./frontierPlot.ts");
      await writeTextFile(flags.plot, frontierPlot(found, measured), "--plot");
      remark(`${flags.plot} written`);
    }
    if (flags.json) return await printJson({ ...found, ...(text !== undefined && { measured }) });
    await print(tables(found, measured));
  } finally {
    await checkpoint.close();
  }
}

async function measureAll(
  checkpoint: Checkpoint,
  planner: Planner,
  text: string,
  { threads, windows, context, bos, noBalance, calibrate: files }: Flags,
): Promise<MeasuredPoint[]> {
  const { measureChoice } = await import("./measurePlan.ts");
  const calibration = await calibrationText(files);
  const calibrate = calibration && { ...calibration, bos };
  const signal = interruptible();
  return withProgress("measuring perplexity", async (line) => {
    const points: MeasuredPoint[] = [];
    for (const bits of MEASURED_BITS) {
      const mix = await planner.plan({ bits });
      for (const [kind, label, choice] of [
        ["mix", `mix at ${bits} bits`, mix.choice],
        ["single", `tcq-s-${bits}`, planner.singleScheme(`tcq-s-${bits}`)],
      ] as const) {
        line.update(points.length, 2 * MEASURED_BITS.length, label);
        const balance = noBalance ? false : undefined;
        const options = { text, threads, windows, context, bos, calibrate, balance, signal };
        const { bytes, perplexity } = await measureChoice(checkpoint, choice, options);
        const predictedLoss = planner.predict(choice).loss;
        points.push({ kind, label, bits: planner.linearBits(choice), bytes, perplexity, predictedLoss });
      }
    }
    return points;
  });
}

function tables({ bits, speed, single }: Frontier, measured: readonly MeasuredPoint[]): string {
  const header = ["bits", "size", "loss", "tokens/s"];
  const row = (point: Frontier["speed"][number]) => [
    point.bits.toFixed(3),
    formatBytes(point.bytes),
    point.loss.toPrecision(4),
    point.tokensPerSecond === undefined ? "" : significant(point.tokensPerSecond),
  ];
  const parts = [`Plans for bits\n${table(header, bits.map(row), header)}`];
  if (speed.length > 0) parts.push(`Plans for speed\n${table(header, speed.map(row), header)}`);
  const singles = single.map((point) => [point.scheme, ...row(point)]);
  parts.push(`One scheme for all linear layers\n${table(["scheme", ...header], singles, header)}`);
  if (measured.length > 0) {
    const rows = measured.map(({ label, bytes, perplexity, predictedLoss }) => [
      label,
      formatBytes(bytes),
      perplexity.toFixed(3),
      predictedLoss.toPrecision(4),
    ]);
    parts.push(
      `Measured\n${table(["", "size", "perplexity", "predicted loss"], rows, ["size", "perplexity", "predicted loss"])}`,
    );
  }
  return parts.join("\n");
}
