import { Worker } from "node:worker_threads";
import { type SpawnWorker, threadSource } from "./workers.ts";

const workerSource = `${threadSource}
const { parentPort } = require("node:worker_threads");
parentPort.once("message", (data) => start(data, (m) => parentPort.postMessage(m)));
`;

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
