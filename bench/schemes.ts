/**
 * What a model loses by each scheme: perplexity, and divergence from the float model, data-free and calibrated.
 *
 * Linear layers are quantized, embedding and head stay float. Every result is a line of --results, whose schemes are
 * not measured again: a run that was ended goes on where it stopped. --ids also writes the token ids that the run reads,
 * PREFIX.windows.json and PREFIX.calibration.json, for bench/oracle/llamacpp.py.
 *
 * node bench/schemes.ts --model DIR --text FILE --results FILE [--calibrate own|FILE --calibration-tokens 81920] [--json]
 *   [--tune-steps 60] [--no-balance] [--ids PREFIX] [--schemes nuq-4,tcq-s-3] [--context 512] [--windows 40] [--bos auto|always|never] [--threads N] [--seed 0]
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openCheckpoint } from "../src/checkpoint/open.node.ts";
import { calibrationSequences } from "../src/engine/calibrate/sequences.ts";
import { type PerplexityResult, perplexity, windowsOf } from "../src/engine/perplexity.ts";
import { quantizeCheckpoint } from "../src/engine/quantize/quantize.node.ts";
import { load } from "../src/node.ts";
import { parseScheme } from "../src/quantizers/scheme.ts";
import { type BosRule, bosBy } from "../src/text/bos.ts";
import { table } from "./measure.ts";
import { openResults } from "./results.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string" },
    text: { type: "string" },
    results: { type: "string" },
    calibrate: { type: "string", multiple: true, default: [] },
    "calibration-tokens": { type: "string", default: "81920" },
    "tune-steps": { type: "string", default: "0" },
    "no-balance": { type: "boolean", default: false },
    ids: { type: "string" },
    schemes: { type: "string" },
    context: { type: "string", default: "512" },
    windows: { type: "string", default: "40" },
    bos: { type: "string", default: "auto" },
    threads: { type: "string" },
    seed: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
  },
});
const { model, text, results } = flags;
if (!model || !text || !results) throw new Error("give --model, --text and --results");
const bos = flags.bos as BosRule;
const context = Number(flags.context);
const windows = Number(flags.windows);
const seed = Number(flags.seed);
const ownText = flags.calibrate.includes("own");
const tuneSteps = Number(flags["tune-steps"]);
const noBalance = flags["no-balance"];
const threads = flags.threads ? Number(flags.threads) : undefined;
const schemes = (flags.schemes?.split(",") ?? defaultSchemes()).map((name) => parseScheme(name).name);

/** What a result was measured with. */
interface Setting {
  readonly model: string;
  readonly scheme: string;
  /** 0 is data-free. */
  readonly calibrationTokens: number;
  /** Whether the model made them up itself. */
  readonly ownText: boolean;
  /** 0 is not tuned. */
  readonly tuneSteps: number;
  readonly noBalance: boolean;
  readonly seed: number;
  readonly context: number;
  readonly windows: number;
  readonly bos: BosRule;
}

type Measured = Pick<
  PerplexityResult,
  "perplexity" | "meanKlDivergence" | "klDivergence99" | "topAgreement" | "tokens"
>;

interface SchemeResult extends Setting, Measured {
  /** Whether channels were scaled first. */
  readonly balanced: boolean;
  /** Of the linear layers, scales included. */
  readonly bitsPerWeight: number;
  readonly quantizeSeconds: number;
}

/** What the paper's comparison is about: 2 to 4 bits, at the widths that a family has. */
function defaultSchemes(): string[] {
  const halves = [2, 2.5, 3, 3.5, 4];
  const trellis = [2, 2.5, 3, 3.25, 3.5, 4];
  const widths = { uniform: [2, 3, 4], nuq: [2, 3, 4], vq: halves, tcq: trellis, "tcq-s": trellis };
  return Object.entries(widths).flatMap(([family, bits]) => bits.map((b) => `${family}-${b}`));
}

const { known, keep } = openResults<SchemeResult>(results);
const measuredWith = (setting: Partial<Setting>) => (result: SchemeResult) =>
  Object.entries(setting).every(([name, value]) => result[name as keyof Setting] === value);

const evaluation = { context, windows, bos };
const textRead = readFileSync(text, "utf8");
const calibrationTexts = ownText ? [] : flags.calibrate.map((file) => readFileSync(file, "utf8"));
const textsToTuneOn = calibrationTexts.length > 0 ? calibrationTexts : undefined;
const float = await load(model, { threads, context });
if (flags.ids !== undefined) writeIds(flags.ids);
const general = { model, seed, ...evaluation };
const unquantized: Setting = {
  ...general,
  ...{ scheme: "float", calibrationTokens: 0, ownText: false, tuneSteps: 0, noBalance: false },
};
if (!known.some(measuredWith(unquantized))) {
  const { perplexity: value, tokens } = await perplexity(float, textRead, evaluation);
  keep({ ...unquantized, perplexity: value, tokens, balanced: false, bitsPerWeight: 32, quantizeSeconds: 0 });
}
const modes = [0, ...(flags.calibrate.length > 0 ? [Number(flags["calibration-tokens"])] : [])];
for (const calibrationTokens of modes) {
  for (const scheme of schemes) {
    const own = ownText && calibrationTokens > 0;
    const setting = { ...general, scheme, calibrationTokens, ownText: own, tuneSteps, noBalance };
    if (!known.some(measuredWith(setting))) keep(await measure(setting));
  }
}
float.dispose();

function writeIds(prefix: string): void {
  const { tokenizer } = float;
  const first = bosBy(bos, tokenizer);
  const read = windowsOf(tokenizer.encode(textRead), context, first).slice(0, windows);
  const tokens = Number(flags["calibration-tokens"]);
  const calibration = calibrationSequences(calibrationTexts, tokenizer, {
    tokens,
    sequenceLength: context,
    bos,
  });
  writeFileSync(`${prefix}.windows.json`, JSON.stringify(read));
  writeFileSync(`${prefix}.calibration.json`, JSON.stringify(calibration));
}

async function measure(setting: Setting): Promise<SchemeResult> {
  const { scheme, calibrationTokens, ownText } = setting;
  const parent = mkdtempSync(join(tmpdir(), "halftone-schemes-"));
  const folder = join(parent, "model");
  try {
    const checkpoint = await openCheckpoint(model!);
    // The windows' own beginning: a model that needs BOS to think must be calibrated with it.
    const given = { texts: calibrationTexts, bos, sequenceLength: context };
    const calibrate = { tokens: calibrationTokens, ...(!ownText && given) };
    const quantized = await quantizeCheckpoint(checkpoint, folder, {
      ...{ scheme, embeddingScheme: "f32", seed, threads },
      calibrate: calibrationTokens > 0 ? calibrate : undefined,
      balance: noBalance ? false : undefined,
      tune: tuneSteps > 0 ? { steps: tuneSteps, bos, texts: textsToTuneOn } : undefined,
    });
    await checkpoint.close();
    const loaded = await load(folder, { threads, context });
    const result = await perplexity(loaded, textRead, { ...evaluation, against: float });
    loaded.dispose();
    const { meanKlDivergence, klDivergence99, topAgreement, tokens } = result;
    return {
      ...setting,
      ...{ perplexity: result.perplexity, tokens, meanKlDivergence, klDivergence99, topAgreement },
      ...{ balanced: quantized.balanced, bitsPerWeight: quantized.linearBitsPerWeight },
      quantizeSeconds: quantized.seconds,
    };
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

const shown = known.filter(measuredWith(general));
if (flags.json) console.log(JSON.stringify(shown, null, 2));
else {
  const rows = shown.map((r) => [
    r.scheme,
    `${r.calibrationTokens}${r.ownText ? " own" : ""}`,
    String(r.tuneSteps),
    r.balanced ? "yes" : "",
    r.perplexity.toPrecision(4),
    r.meanKlDivergence?.toPrecision(3) ?? "",
    r.klDivergence99?.toPrecision(3) ?? "",
    r.topAgreement?.toFixed(3) ?? "",
  ]);
  const numbers = ["calibration tokens", "tune steps", "balanced", "perplexity", "KL", "KL 99%", "same top"];
  console.log(table(["scheme", ...numbers], rows));
}
