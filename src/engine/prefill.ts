import { breather } from "./breathe.ts";
import type { Runner } from "./runner.ts";

/**
 * Feeds tokens into a sequence from position `start`, a chunk at a time.
 * Returns the last token's logits, undefined when the signal ended it first.
 */
export async function prefill(
  runner: Runner,
  ids: readonly number[],
  signal?: AbortSignal,
  start = 0,
  sequence = 0,
): Promise<Float32Array | undefined> {
  const breathe = breather();
  let logits: Float32Array | undefined;
  for (let at = 0; at < ids.length; at += runner.chunk) {
    if (signal?.aborted) return undefined;
    const part = ids.slice(at, at + runner.chunk);
    const last = at + part.length === ids.length;
    const positions = part.map((_, i) => start + at + i);
    const sequences = part.map(() => sequence);
    const input = { ids: part, positions, sequences, length: start + ids.length };
    logits = await runner.step(input, last ? "last" : "none");
    await breathe();
  }
  return logits;
}
