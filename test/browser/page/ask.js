// Runs in a page or in its worker: loads a model the way it is told to, asks it, and says what came of it.
import { load, Model, openCheckpoint, openWasm, webWorkers } from "/lib/halftone.js";

/** @param {{model: string, files?: string[], simd?: string, options: object, prompt: string, maxTokens: number}} question */
export async function ask({ model: address, files, simd, options, prompt, maxTokens }) {
  const source = files === undefined ? address : await Promise.all(files.map((name) => pick(address, name)));
  const model = await (simd === undefined ? load(source, options) : loadOn(simd, source, options));
  try {
    const generation = model.generate([{ role: "user", content: prompt }], { maxTokens });
    const { tokens, text, tokensPerSecond } = await generation.result;
    return { tokens, text, threads: model.backend.threads, tokensPerSecond };
  } finally {
    model.dispose();
  }
}

async function loadOn(simd, source, options) {
  const backend = await openWasm({ simd, threads: options.threads, spawn: webWorkers() });
  return Model.load(await openCheckpoint(source), backend, options);
}

async function pick(folder, name) {
  const response = await fetch(`${folder}/${name}`);
  return new File([await response.blob()], name);
}

if (globalThis.document) globalThis.ask = ask;
else
  globalThis.onmessage = ({ data }) =>
    ask(data).then(postMessage, (error) => postMessage({ error: String(error) }));
