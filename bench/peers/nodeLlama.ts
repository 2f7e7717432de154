import { statSync } from "node:fs";
import { type Session, tokenId } from "./peer.ts";

/** What is used of node-llama-cpp's binding: below its JavaScript API, which spends more time than llama.cpp. */
interface Binding {
  initBatch(size: number): void;
  addToBatch(sequence: number, first: number, tokens: Uint32Array, logits: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  disposeSequence(sequence: number): void;
}

/** llama.cpp through node-llama-cpp's prebuilt binary, on the CPU; undefined where it is not installed. */
export async function openNodeLlama(
  file: string,
  threads: number,
  context: number,
): Promise<Session | undefined> {
  const name = "node-llama-cpp";
  const module = await import(name).catch(() => undefined);
  if (!module) return undefined;
  const llama = await module.getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: "error" });
  const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
  const loaded = await model.createContext({
    ...{ contextSize: context, batchSize: 512, sequences: 1 },
    threads: { ideal: threads, min: threads },
  });
  const binding = loaded._ctx as Binding;
  const feed = async (from: number, count: number) => {
    const tokens = Uint32Array.from({ length: count }, (_, i) => tokenId(from + i, 30_000));
    binding.initBatch(count);
    binding.addToBatch(0, from, tokens, Uint32Array.of(count - 1));
    await binding.decodeBatch();
  };
  return {
    ...{ name, threads, bytes: statSync(file).size },
    async measure(prompt, decode) {
      binding.disposeSequence(0);
      const started = performance.now();
      for (let at = 0; at < prompt; at += 512) await feed(at, Math.min(512, prompt - at));
      const prefilled = performance.now();
      for (let at = prompt; at < prompt + decode; at++) await feed(at, 1);
      const ended = performance.now();
      return {
        prefill: (1000 * prompt) / (prefilled - started),
        decode: (1000 * decode) / (ended - prefilled),
      };
    },
    async close() {
      await loaded.dispose();
      await model.dispose();
      await llama.dispose();
    },
  };
}
