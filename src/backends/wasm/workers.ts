/** What a worker thread runs: the same module over the same memory, until the backend is disposed. */
export const workerSource = `
const start = async ({ module, memory, thread }, report) => {
  const env = { memory, abort() { throw new Error("kernel aborted"); } };
  const { exports } = await WebAssembly.instantiate(module, { env });
  report("ready");
  exports.work(thread);
};
if (typeof self !== "undefined" && typeof self.postMessage === "function" && typeof importScripts === "function") {
  self.onmessage = ({ data }) => start(data, (m) => self.postMessage(m));
} else {
  const { parentPort } = require("node:worker_threads");
  parentPort.once("message", (data) => start(data, (m) => parentPort.postMessage(m)));
}
`;

export interface WorkerInput {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly thread: number;
}

/** Starts one worker thread; resolves when it is about to wait for work. */
export type SpawnWorker = (input: WorkerInput) => Promise<{ terminate(): void }>;

/** Workers of a browser. The page must be cross-origin isolated, or memory cannot be shared. */
export const spawnWebWorker: SpawnWorker = (input) =>
  new Promise((resolve, reject) => {
    const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.onmessage = () => {
      URL.revokeObjectURL(url);
      resolve(worker);
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(input);
  });
