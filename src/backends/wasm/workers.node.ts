import { readSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { type FetchRows, rowFetcher } from "./rowFetcher.ts";
import { type SpawnWorker, threadSource } from "./workers.ts";

const workerSource = `${threadSource}
const { parentPort } = require("node:worker_threads");
const rowFetcher = ${rowFetcher};
parentPort.once("message", (data) =>
  start(data, (m) => parentPort.postMessage(m), rowFetcher(require("node:fs").readSync, data.memory)));
`;

/** Rows of files for the thread that calls the kernels. */
export function nodeRowFetcher(memory: WebAssembly.Memory): FetchRows {
  return rowFetcher(readSync, memory);
}

/** Node's worker threads; they never keep the process alive. */
export const spawnNodeWorker: SpawnWorker = (input) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(workerSource, {
      eval: true,
      // Inherited, --input-type=module would make the source above a module, without require.
      execArgv: [],
      stdout: false,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    worker.once("message", () => {
      worker.removeAllListeners("error");
      worker.unref();
      resolve({ terminate: () => void worker.terminate() });
    });
    worker.once("error", reject);
    worker.postMessage(input);
  });
