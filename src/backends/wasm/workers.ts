import { HalftoneError } from "../../errors.ts";

/** What a worker thread does: the same module over the same memory, until the backend is disposed. */
export const threadSource = `
const start = async ({ module, memory, thread }, report, fetchRows = () => 2) => {
  const env = { memory, fetchRows, abort() { throw new Error("kernel aborted"); } };
  const { exports } = await WebAssembly.instantiate(module, { env });
  report("ready");
  exports.work(thread);
};
`;

/** The script of a browser's worker; the package holds it as a file too, `halftone/worker.js`. */
export const webWorkerSource = `${threadSource}self.onmessage = ({ data }) => start(data, (m) => self.postMessage(m));\n`;

export interface WorkerInput {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly thread: number;
}

/** Starts one worker thread; resolves when it is about to wait for work. */
export type SpawnWorker = (input: WorkerInput) => Promise<{ terminate(): void }>;

/**
 * Workers of a browser, from the script at `url` or, without one, from a blob. The page must be cross-origin
 * isolated, or memory cannot be shared.
 */
export function webWorkers(url?: string | URL): SpawnWorker {
  return (input) =>
    new Promise((resolve, reject) => {
      const script = url ?? URL.createObjectURL(new Blob([webWorkerSource], { type: "text/javascript" }));
      const fail = (problem: string, cause: unknown) => {
        worker?.terminate();
        const remedy =
          url === undefined
            ? "if its Content-Security-Policy forbids blob: workers, serve halftone/worker.js and name it as workerUrl"
            : `check that ${url} serves halftone/worker.js, with the page's Cross-Origin-Embedder-Policy`;
        reject(new HalftoneError(`a worker thread does not start (${problem}); ${remedy}`, { cause }));
      };
      let worker: Worker | undefined;
      try {
        worker = new Worker(script);
        worker.onmessage = () => {
          if (url === undefined) URL.revokeObjectURL(String(script));
          resolve(worker!);
        };
        worker.onerror = (event) => fail(event.message ?? "its script is not loaded", event);
        worker.onmessageerror = (event) => fail("memory cannot be shared with it", event);
        worker.postMessage(input);
      } catch (cause) {
        fail(cause instanceof Error ? cause.message : String(cause), cause);
      }
    });
}
