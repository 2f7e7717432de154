import { UsageError } from "../../errors.ts";

/** How the next token is chosen. Everything is optional; the defaults sample from the model's distribution. */
export interface SamplerOptions {
  /** Divides the logits; 0 takes the most likely token (greedy). Default 1. */
  readonly temperature?: number;
  /** Keeps the k most likely tokens (and those as likely as the k-th); 0 keeps all. Default 0. */
  readonly topK?: number;
  /** Keeps the fewest most likely tokens whose probabilities reach this sum. Default 1. */
  readonly topP?: number;
  /** Keeps tokens at least this fraction as likely as the most likely one. Default 0. */
  readonly minP?: number;
  /** Makes tokens of prompt and answer less likely when above 1 (CTRL, arXiv:1909.05858). Default 1. */
  readonly repetitionPenalty?: number;
  /** Subtracted once from the logit of each token of the answer, -2 to 2. Default 0. */
  readonly presencePenalty?: number;
  /** Subtracted from a token's logit for each occurrence in the answer, -2 to 2. Default 0. */
  readonly frequencyPenalty?: number;
  /** Added to the logits of the tokens named by id; -Infinity forbids a token. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** Same seed, same draws. By default drawn at random. */
  readonly seed?: number;
}

/** Options with their defaults filled in. */
export type CheckedSamplerOptions = Required<Omit<SamplerOptions, "seed" | "logitBias">> & {
  readonly logitBias: readonly (readonly [id: number, bias: number])[];
  readonly seed: number | undefined;
};

const finite = Number.isFinite;
const rules: Record<
  keyof Omit<CheckedSamplerOptions, "logitBias" | "seed">,
  [number, (x: number) => boolean, string]
> = {
  temperature: [1, (x) => finite(x) && x >= 0, "a number from 0 (greedy) on"],
  topK: [0, (x) => Number.isInteger(x) && x >= 0, "a whole number from 0 (off) on"],
  topP: [1, (x) => x > 0 && x <= 1, "a number above 0, at most 1 (off)"],
  minP: [0, (x) => x >= 0 && x <= 1, "a number from 0 (off) to 1"],
  repetitionPenalty: [1, (x) => finite(x) && x > 0, "a number above 0; 1 is off"],
  presencePenalty: [0, (x) => x >= -2 && x <= 2, "a number from -2 to 2; 0 is off"],
  frequencyPenalty: [0, (x) => x >= -2 && x <= 2, "a number from -2 to 2; 0 is off"],
};

/**
 * Fills in defaults.
 *
 * @throws UsageError naming the option, its value and what it takes, for an unknown option too.
 */
export function checkSamplerOptions(options: SamplerOptions): CheckedSamplerOptions {
  for (const name of Object.keys(options)) {
    if (!(name in rules) && name !== "logitBias" && name !== "seed") {
      throw new UsageError(
        `sampler option ${name} is unknown: use ${Object.keys(rules).join(", ")}, logitBias, seed`,
      );
    }
  }
  const numbers = Object.entries(rules).map(([name, [standard, accepts, wanted]]) => {
    const value: unknown = options[name as keyof SamplerOptions] ?? standard;
    if (typeof value !== "number" || !accepts(value)) throw wrong(name, value, wanted);
    return [name, value];
  });
  const seed: unknown = options.seed;
  if (seed !== undefined && !(Number.isSafeInteger(seed) && (seed as number) >= 0)) {
    throw wrong("seed", seed, "a whole number from 0 to 2^53 - 1");
  }
  return { ...Object.fromEntries(numbers), logitBias: readBias(options.logitBias), seed };
}

function readBias(logitBias: unknown): [number, number][] {
  if (logitBias === undefined || logitBias === null) return [];
  if (typeof logitBias !== "object")
    throw wrong("logitBias", logitBias, "an object from token ids to numbers");
  return Object.entries(logitBias).map(([key, bias]): [number, number] => {
    const id = Number(key);
    if (key === "" || !Number.isInteger(id) || id < 0) throw wrong("logitBias", key, "token ids as keys");
    if (typeof bias !== "number" || !(bias < Infinity)) {
      throw wrong(`logitBias[${key}]`, bias, "a number, or -Infinity to forbid the token");
    }
    return [id, bias];
  });
}

function wrong(name: string, value: unknown, wanted: string): UsageError {
  const shown = typeof value === "number" ? String(value) : JSON.stringify(value);
  return new UsageError(`sampler option ${name} is ${shown}: give ${wanted}`);
}
