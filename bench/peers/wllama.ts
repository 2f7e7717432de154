import { existsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { findChromium, ISOLATION, serveFiles, startChromium } from "../../tools/browser-host.ts";
import type { Session, Speed } from "./peer.ts";

interface Page {
  open(model: string, threads: number, context: number): Promise<void>;
  measure(prompt: number, decode: number): Promise<Speed>;
}

const page = `<script type="module">
import { Wllama } from "/lib/index.js";
let wllama;
globalThis.open = async (model, threads, context) => {
  wllama = new Wllama({ default: new URL("/lib/wasm/wllama.wasm", location).href });
  const blob = await (await fetch(model)).blob();
  await wllama.loadModel([blob], { n_threads: threads, n_ctx: context });
};
globalThis.measure = async (prompt, decode) => {
  const text = Array.from({ length: prompt }, (_, i) => [" the", " of", " and", " to"][i * 7 % 4]).join("");
  const options = { prompt: text, max_tokens: decode, cache_prompt: false, ignore_eos: true, temperature: 0 };
  const { timings } = await wllama.createCompletion(options);
  return { prefill: timings.prompt_per_second, decode: timings.predicted_per_second };
};
globalThis.ready = true;
</script>`;

/** llama.cpp in Chromium through wllama, by its own timings; undefined where either is not installed. */
export async function openWllama(
  file: string,
  threads: number,
  context: number,
): Promise<Session | undefined> {
  const lib = fileURLToPath(new URL("node_modules/@wllama/wllama/esm", import.meta.url));
  const path = findChromium();
  if (!path || !existsSync(lib)) return undefined;
  const server = await serveFiles({ folders: { lib, model: dirname(file) }, page, headers: ISOLATION });
  const browser = await startChromium(path);
  const tab = await (await browser.newContext()).newPage();
  await tab.goto(server.url);
  await tab.waitForFunction("globalThis.ready");
  const model = `/model/${basename(file)}`;
  await tab.evaluate(([url, count, size]) => (globalThis as unknown as Page).open(url, count, size), [
    model,
    threads,
    context,
  ] as const);
  return {
    ...{ name: "wllama", threads, bytes: statSync(file).size },
    measure: (prompt, decode) =>
      tab.evaluate(([tokens, more]) => (globalThis as unknown as Page).measure(tokens, more), [
        prompt,
        decode,
      ] as const),
    async close() {
      await browser.close();
      await server.close();
    },
  };
}
