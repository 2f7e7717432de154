import { breather } from "./breathe.ts";
import type { Runner } from "./runner.ts";

/**
 * Feeds tokens into sequence 0 from position `start`, a chunk at a time.
 * Returns the last token's logits, undefined when the signal ended it first.
 */
export async function prefill(
  runner: Runner,
  ids: readonly number[],
  signal?: AbortSignal,
  start = 0,
): Promise<Float32Array | undefined> {
  const breathe = breather();
  let logits: Float32Array | undefined;
  for (let at = 0; at < ids.length; at += runner.chunk) {
    if (signal?.aborted) return undefined;
    const part = ids.slice(at, at + runner.chunk);
    const last = at + part.length === ids.length;
    const positions = part.map((_, i) => start + at + i);
    logits = await runner.step({ ids: part, positions, length: start + ids.length }, last ? "last" : "none");
    await breathe();
  }
  return logits;
}
