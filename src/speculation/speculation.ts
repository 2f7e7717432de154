import type { ActivationPrecision } from "../backends/operation.ts";
import type { Reading } from "../engine/reading.ts";
import type { Runner } from "../engine/runner.ts";
import { UsageError } from "../errors.ts";
import type { Drafter } from "./drafter.ts";
import type { SpeculationMode } from "./mode.ts";
import { ngramDrafter } from "./ngram.ts";
import { adaptivePolicy, type DraftPolicy, fixedPolicy, LONGEST_DRAFT } from "./policy.ts";
import { readingDrafter } from "./readingDrafter.ts";
import { Speculator } from "./speculator.ts";

export interface SpeculationOptions {
  /**
   * Who drafts tokens that the model then verifies several at a time; the tokens stay those of the model alone (drawn
   * ones: their distribution). Default `auto`, which measures all ways and drafts as far as it pays.
   */
  readonly speculate?: SpeculationMode;
  /** Tokens of a draft; default adapted to what is accepted and what it costs. */
  readonly draft?: number;
}

/** From the most precise reading to the least. */
const precisions: readonly ActivationPrecision[] = ["float", "int16", "int8", "int4"];
const drafts = { w4a8: "int8", w4a4: "int4" } as const;

/** Bursts at an answer's start that go without drafts: the first may be recorded on the way. */
const CONTROLS = 2;

/** Speculation with one runner: what is learned about drafts, and what they cost, serves the answers to come. */
export class Speculation {
  readonly #runner: Runner;
  readonly #policies = new Map<string, DraftPolicy>();

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /**
   * What lets one answer grow.
   *
   * @param repeatable the answer is drawn with a given seed: `auto` then keeps to drafts that leave the draws as they are
   * @throws UsageError when drafts would read the model no cheaper than its own reading, or for a length out of range
   */
  speculator({ speculate = "auto", draft }: SpeculationOptions, repeatable: boolean): Speculator {
    if (draft !== undefined && !(Number.isInteger(draft) && draft >= 1 && draft <= LONGEST_DRAFT))
      throw new UsageError(`the draft length is ${draft}; give 1 to ${LONGEST_DRAFT}`);
    const key = `${speculate} ${draft} ${repeatable}`;
    let policy = this.#policies.get(key);
    if (!policy) {
      const drafters = draftersFor(this.#runner, speculate, repeatable);
      const rests = speculate === "auto" || speculate === "off";
      policy =
        draft === undefined || rests
          ? adaptivePolicy(drafters, { rests, most: draft })
          : fixedPolicy(drafters, draft);
      this.#policies.set(key, policy);
    }
    return new Speculator(this.#runner, policy, { controls: CONTROLS });
  }
}

/** Cheaper readings than the runner's own, by mode. */
function cheaperReadings({ reading }: Runner): Map<SpeculationMode, Reading> {
  const { activations, compensation } = reading;
  const cheaper = precisions.slice(precisions.indexOf(activations) + 1);
  const rounded = Object.entries(drafts).filter(([, precision]) => cheaper.includes(precision));
  return new Map<SpeculationMode, Reading>([
    ...(compensation ? [["uncompensated", { activations }] as const] : []),
    ...rounded.map(
      ([mode, precision]) => [mode as keyof typeof drafts, { ...reading, activations: precision }] as const,
    ),
  ]);
}

function draftersFor(runner: Runner, mode: SpeculationMode, repeatable: boolean): Drafter[] {
  if (mode === "off") return [];
  if (mode === "ngram") return [ngramDrafter()];
  const readings = cheaperReadings(runner);
  if (mode === "auto") {
    const readers = [...readings].map(([name, reading]) => readingDrafter(name, runner, reading));
    return [ngramDrafter(), ...(repeatable ? [] : readers)];
  }
  const reading = readings.get(mode);
  if (reading) return [readingDrafter(mode, runner, reading)];
  if (mode === "uncompensated")
    throw new UsageError("drafts without compensation need a model with it: quantize with --residual");
  throw new UsageError(
    `drafts of ${mode} read activations as ${drafts[mode]}, no less precisely than the model does; verify with a more precise reading (--activations float)`,
  );
}
