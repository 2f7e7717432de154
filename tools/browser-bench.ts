/**
 * Decoding in Chromium beside Node, same checkpoint, same threads:
 * `node tools/browser-bench.ts FOLDER` with a quantized Hugging Face folder.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "../src/median.ts";
import { load } from "../src/node.ts";
import { bundleForBrowser } from "./browser-bundle.ts";
import { findChromium, ISOLATION, serveFiles, startChromium } from "./browser-host.ts";

const PROMPT = "Tell me a long story.";
const MAX_TOKENS = 200;
const ROUNDS = 5;

async function inNode(folder: string, threads: number): Promise<number> {
  const model = await load(folder, { threads, context: 512 });
  try {
    const generation = model.generate(PROMPT, { maxTokens: MAX_TOKENS, ignoreEos: true });
    return (await generation.result).tokensPerSecond;
  } finally {
    model.dispose();
  }
}

interface PageRun {
  readonly library: string;
  readonly threads: number;
  readonly prompt: string;
  readonly maxTokens: number;
}

/** Runs in the page; the bundle's address is a value so that nothing here resolves it. */
async function inPage({ library, threads, prompt, maxTokens }: PageRun) {
  const { load } = (await import(library)) as typeof import("../src/browser.ts");
  const started = performance.now();
  const model = await load("/model", { threads, context: 512 });
  const loadSeconds = (performance.now() - started) / 1000;
  const { tokensPerSecond } = await model.generate(prompt, { maxTokens, ignoreEos: true }).result;
  model.dispose();
  return { tokensPerSecond, loadSeconds };
}

const model = process.argv[2];
const chromium = findChromium();
if (model !== undefined && chromium !== undefined) {
  const folder = mkdtempSync(join(tmpdir(), "halftone-bench-"));
  await bundleForBrowser(folder);
  const server = await serveFiles({ folders: { lib: folder, model }, headers: ISOLATION });
  const browser = await startChromium(chromium);
  const page = await browser.newPage();
  await page.goto(server.url);
  for (let threads = 1; threads <= availableParallelism(); threads++) {
    const [node, chrome, loads]: number[][] = [[], [], []];
    // Alternating, so that a busy machine slows both.
    for (let round = 0; round < ROUNDS; round++) {
      node.push(await inNode(model, threads));
      const run = { library: `${server.url}lib/halftone.js`, threads, prompt: PROMPT, maxTokens: MAX_TOKENS };
      const result = await page.evaluate(inPage, run);
      chrome.push(result.tokensPerSecond);
      loads.push(result.loadSeconds);
    }
    const show = (rates: number[]) => `${median(rates).toFixed(0)} (best ${Math.max(...rates).toFixed(0)})`;
    console.log(
      `${threads} threads: Node ${show(node)}, Chromium ${show(chrome)} tokens/s; load in ${median(loads).toFixed(2)} s`,
    );
  }
  await browser.close();
  await server.close();
  rmSync(folder, { recursive: true });
}
