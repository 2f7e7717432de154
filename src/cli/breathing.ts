import { setImmediate } from "node:timers/promises";

const INTERVAL_MS = 50;

/** The same pieces, with room for Ctrl-C between them: the engine computes on the thread that listens. */
export async function* breathing<T>(pieces: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  let breathedAt = performance.now();
  for await (const piece of pieces) {
    yield piece;
    if (performance.now() - breathedAt < INTERVAL_MS) continue;
    await setImmediate();
    breathedAt = performance.now();
  }
}
