import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { load } from "../../src/node.ts";
import { type Session, tokenId } from "./peer.ts";

/** Halftone itself, by its runner: no sampling, as with the others. */
export async function openHalftone(folder: string, threads: number, context: number): Promise<Session> {
  const model = await load(folder, { threads, context });
  const { runner, spec } = model;
  const id = (position: number) => tokenId(position, spec.vocabularySize);
  const step = (from: number, count: number, last: boolean) => {
    const positions = Array.from({ length: count }, (_, i) => from + i);
    return runner.step({ ids: positions.map(id), positions }, last ? "last" : "none");
  };
  return {
    ...{ name: "halftone", threads },
    bytes: readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0),
    async measure(prompt, decode) {
      const started = performance.now();
      for (let at = 0; at < prompt; at += runner.chunk) {
        const count = Math.min(runner.chunk, prompt - at);
        await step(at, count, at + count === prompt);
      }
      const prefilled = performance.now();
      for (let at = prompt; at < prompt + decode; at++) await step(at, 1, true);
      const ended = performance.now();
      return {
        prefill: (1000 * prompt) / (prefilled - started),
        decode: (1000 * decode) / (ended - prefilled),
      };
    },
    close: async () => model.dispose(),
  };
}
