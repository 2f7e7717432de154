import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers/promises";
import { pipeline } from "../engine/quantize/pipeline.ts";
import { createPool } from "../engine/quantize/pool.node.ts";
import type { Distortion } from "../quantizers/distortion.ts";
import { allSchemes, type Scheme } from "../quantizers/scheme.ts";
import { checkWritable, writeTextFile } from "./files.ts";
import type { paletteFlags } from "./flags.ts";
import { formatCount } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { print, printJson, remark, table } from "./output.ts";
import { type ProgressLine, withProgress } from "./progress.ts";
import { schemesNamed } from "./schemes.ts";
import type { Invocation } from "./verb.ts";

interface Measured extends Distortion {
  readonly quantizer: string;
  readonly bits: number;
  /** Only when asked for; null where the wasm backend has no kernel for the scheme. */
  readonly weightsPerSecond?: number | null;
}

/** `halftone palette`: how good, and on request how fast, every quantizer is on this machine. */
export async function palette({ flags }: Invocation<typeof paletteFlags>): Promise<void> {
  const schemes = schemesOf(flags.schemes);
  await checkWritable(flags.plot, "--plot");
  const results = await measure(schemes, flags);
  if (flags.plot !== undefined) await writePlot(flags.plot, results);
  if (flags.json) return printJson(results);
  const header = ["quantizer", "bits", "distortion", "bound", "ratio"];
  const rows = results.map((result) => [
    result.quantizer,
    String(result.bits),
    result.distortion.toPrecision(4),
    result.bound.toPrecision(4),
    (result.distortion / result.bound).toFixed(3),
    ...(flags.speed ? [speedText(result.weightsPerSecond)] : []),
  ]);
  const columns = flags.speed ? [...header, "weights/s"] : header;
  await print(table(columns, rows, columns.slice(1)));
}

function schemesOf(names: string | undefined): Scheme[] {
  return names === undefined ? allSchemes().filter(({ family }) => family !== "float") : schemesNamed(names);
}

/** Errors first, on all threads; then speeds, with nothing beside them. */
function measure(
  schemes: readonly Scheme[],
  flags: Invocation<typeof paletteFlags>["flags"],
): Promise<Measured[]> {
  const signal = interruptible();
  return withProgress("measuring", async (line) => {
    const measured = await measureErrors(schemes, flags, signal, line);
    return flags.speed ? await measureSpeeds(schemes, measured, flags.threads, signal, line) : measured;
  });
}

async function measureErrors(
  schemes: readonly Scheme[],
  { sequences, seed, threads = availableParallelism() }: Invocation<typeof paletteFlags>["flags"],
  signal: AbortSignal,
  line: ProgressLine,
): Promise<Measured[]> {
  const pool = createPool(Math.min(threads, schemes.length));
  const results: Measured[] = [];
  try {
    const start = ({ name: scheme }: Scheme) => pool.run({ kind: "distortion", scheme, sequences, seed });
    for await (const [{ name: quantizer, bits }, result] of pipeline(schemes, 2 * pool.threads, start)) {
      signal.throwIfAborted();
      results.push({ quantizer, bits, ...result });
      line.update(results.length, schemes.length, `error of ${quantizer}`);
    }
  } finally {
    await pool.close();
  }
  return results;
}

async function measureSpeeds(
  schemes: readonly Scheme[],
  measured: readonly Measured[],
  threads: number | undefined,
  signal: AbortSignal,
  line: ProgressLine,
): Promise<Measured[]> {
  const { SpeedMeter } = await import("./paletteSpeed.ts");
  const meter = await SpeedMeter.open(threads);
  const results: Measured[] = [];
  try {
    for (const [i, scheme] of schemes.entries()) {
      line.update(i, schemes.length, `speed of ${scheme.name}`);
      await setImmediate();
      signal.throwIfAborted();
      results.push({ ...measured[i], weightsPerSecond: await meter.weightsPerSecond(scheme) });
    }
  } finally {
    meter.dispose();
  }
  const without = results.filter(({ weightsPerSecond }) => weightsPerSecond === null);
  if (without.length > 0) {
    const names = without.map(({ quantizer }) => quantizer).join(", ");
    line.clear();
    remark(`The wasm backend has no kernel for ${names}.`);
  }
  return results;
}

async function writePlot(file: string, results: readonly Measured[]): Promise<void> {
  const { palettePlot } = await import("./palettePlot.ts");
  await writeTextFile(file, palettePlot(results), "--plot");
  remark(`${file} written`);
}

function speedText(weightsPerSecond: number | null | undefined): string {
  return weightsPerSecond ? formatCount(weightsPerSecond) : "none";
}
