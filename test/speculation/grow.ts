import { prefill } from "../../src/engine/prefill.ts";
import { crossesBorder, roomBeforeBorder } from "../../src/engine/ropeBorders.ts";
import type { Runner } from "../../src/engine/runner.ts";
import type { SamplerOptions } from "../../src/engine/sampler/options.ts";
import { createSampler } from "../../src/engine/sampler/sampler.ts";
import type { Sequence } from "../../src/speculation/sequence.ts";
import type { Speculator } from "../../src/speculation/speculator.ts";

/** Some token ids of a vocabulary of 96. */
export function promptOf(length: number, seed: number): number[] {
  return Array.from({ length }, (_, i) => (i * i * 7 + 31 * seed + 13 * i + 5) % 96);
}

/** Lets a speculator continue prompts side by side by `count` tokens each. */
export async function growAll(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  count: number,
  speculator: Speculator,
  sampling: SamplerOptions = { temperature: 0 },
): Promise<number[][]> {
  const answers: number[][] = [];
  const samplers = prompts.map(() => createSampler(sampling));
  for (const [slot, prompt] of prompts.entries()) {
    const logits = await prefill(runner, prompt, undefined, 0, slot);
    answers.push([samplers[slot].sample(logits!, { prompt, generated: [] })]);
  }
  for (;;) {
    const open = prompts.flatMap((_, slot) => (answers[slot].length < count ? [slot] : []));
    if (open.length === 0) return answers;
    const sequences: Sequence[] = [];
    for (const slot of open) {
      const [prompt, generated] = [prompts[slot], answers[slot]];
      const length = prompt.length + generated.length;
      if (crossesBorder(runner.spec, length)) {
        const logits = await prefill(runner, [...prompt, ...generated], undefined, 0, slot);
        generated.push(samplers[slot].sample(logits!, { prompt, generated }));
        continue;
      }
      const room = Math.min(count - generated.length, roomBeforeBorder(runner.spec, length));
      sequences.push({ slot, prompt, generated, room, sampler: samplers[slot] });
    }
    if (sequences.length === 0) continue;
    const bursts = await speculator.burst(sequences);
    for (const [i, { slot, room }] of sequences.entries()) {
      if (bursts[i].length < 1 || bursts[i].length > room) throw new Error("a burst left its room");
      answers[slot].push(...bursts[i]);
    }
  }
}
