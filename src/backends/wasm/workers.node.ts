import { Worker } from "node:worker_threads";
import { type SpawnWorker, workerSource } from "./workers.ts";

/** Node's worker threads; they never keep the process alive. */
export const spawnNodeWorker: SpawnWorker = (input) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(workerSource, {
      eval: true,
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
