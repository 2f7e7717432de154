import { prefill } from "../engine/prefill.ts";
import { crossesBorder, roomBeforeBorder } from "../engine/ropeBorders.ts";
import type { Runner } from "../engine/runner.ts";
import type { SamplerOptions } from "../engine/sampler/options.ts";
import { createSampler } from "../engine/sampler/sampler.ts";
import type { Sequence } from "./sequence.ts";
import type { Speculator } from "./speculator.ts";

export interface Grown {
  /** What was generated after each prompt. */
  readonly answers: readonly (readonly number[])[];
  /** Seconds after all prompts were read and each answer had its first token. */
  readonly seconds: number;
}

/** Continues prompts side by side by `count` tokens each, in the runner's first places. Greedy by default. */
export async function growTogether(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  count: number,
  speculator: Speculator,
  sampling: SamplerOptions = { temperature: 0 },
): Promise<Grown> {
  const answers = prompts.map((prompt, slot) => {
    return { prompt, slot, generated: [] as number[], sampler: createSampler(sampling) };
  });
  type Answer = (typeof answers)[number];
  const lengthOf = ({ prompt, generated }: Answer) => prompt.length + generated.length;
  const readAnew = async ({ slot, prompt, generated, sampler }: Answer) => {
    const logits = await prefill(runner, [...prompt, ...generated], undefined, 0, slot);
    generated.push(sampler.sample(logits!, { prompt, generated }));
  };

  for (const answer of answers) await readAnew(answer);
  const started = performance.now();
  for (;;) {
    const open = answers.filter(({ generated }) => generated.length < count);
    if (open.length === 0) break;
    const crossing = open.filter((answer) => crossesBorder(runner.spec, lengthOf(answer)));
    for (const answer of crossing) await readAnew(answer);
    const growing = open.filter((answer) => !crossing.includes(answer));
    if (growing.length === 0) continue;
    const sequences = growing.map((answer): Sequence => {
      const room = Math.min(count - answer.generated.length, roomBeforeBorder(runner.spec, lengthOf(answer)));
      return { ...answer, room };
    });
    const bursts = await speculator.burst(sequences);
    bursts.forEach((tokens, i) => {
      growing[i].generated.push(...tokens);
    });
  }
  const seconds = (performance.now() - started) / 1000;
  return { answers: answers.map(({ generated }) => generated), seconds };
}
