import { setImmediate } from "node:timers/promises";
import { type Distortion, measureDistortion } from "../quantizers/distortion.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { allSchemes, parseScheme, type Scheme } from "../quantizers/scheme.ts";
import { writeTextFile } from "./files.ts";
import type { paletteFlags } from "./flags.ts";
import { formatCount } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { print, printJson, remark, table } from "./output.ts";
import { progressLine } from "./progress.ts";
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
  if (names === undefined) return allSchemes().filter(({ family }) => family !== "float");
  const schemes = names.split(",").map((name) => parseScheme(name.trim()));
  for (const scheme of schemes) quantizerFor(scheme);
  return schemes;
}

async function measure(
  schemes: readonly Scheme[],
  { sequences, seed, speed, threads }: Invocation<typeof paletteFlags>["flags"],
): Promise<Measured[]> {
  const signal = interruptible();
  const meter = speed ? await (await import("./paletteSpeed.ts")).SpeedMeter.open(threads) : undefined;
  const line = progressLine("measuring");
  const results: Measured[] = [];
  try {
    for (const [i, scheme] of schemes.entries()) {
      line.update(i, schemes.length, scheme.name);
      await setImmediate();
      signal.throwIfAborted();
      const {
        distortion,
        bound,
        sequences: measured,
      } = measureDistortion(quantizerFor(scheme), sequences, seed);
      results.push({
        quantizer: scheme.name,
        bits: scheme.bits,
        distortion,
        bound,
        sequences: measured,
        ...(meter && { weightsPerSecond: await meter.weightsPerSecond(scheme) }),
      });
    }
  } finally {
    line.clear();
    meter?.dispose();
  }
  const slow = results.filter(({ weightsPerSecond }) => weightsPerSecond === null);
  if (slow.length > 0) {
    remark(`The wasm backend has no kernel for ${slow.map(({ quantizer }) => quantizer).join(", ")}.`);
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
