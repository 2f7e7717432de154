import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { UnsupportedError, UsageError } from "../../errors.ts";
import type { Job, JobResults } from "./job.ts";
import type { WorkerReply } from "./worker.node.ts";

/** Threads that quantize. */
export interface Pool {
  readonly threads: number;
  /** Runs a job when a thread is free. */
  run<J extends Job>(job: J): Promise<JobResults[J["kind"]]>;
  /** Ends the threads; jobs that have not finished are rejected. */
  close(): Promise<void>;
}

interface Task {
  readonly job: Job;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Starts worker threads. What they compute depends neither on their number nor on which of them gets a job. */
export function createPool(threads: number): Pool {
  const waiting: Task[] = [];
  const running = new Map<Worker, Task>();
  const idle: Worker[] = [];
  const workers = Array.from({ length: Math.max(1, threads) }, start);
  let closed = false;

  function start(): Worker {
    const worker = new Worker(workerEntry(), { stdout: false });
    worker.on("message", (reply: WorkerReply) => {
      const task = running.get(worker);
      running.delete(worker);
      idle.push(worker);
      if ("error" in reply) task?.reject(rebuilt(reply.error));
      else task?.resolve(reply.result as never);
      next();
    });
    // A thread that dies (out of memory) takes the whole run with it: its job would only die again.
    worker.on("error", (error) => fail(error));
    worker.unref();
    idle.push(worker);
    return worker;
  }

  function next(): void {
    while (idle.length > 0 && waiting.length > 0) {
      const worker = idle.pop()!;
      const task = waiting.shift()!;
      running.set(worker, task);
      worker.ref();
      worker.postMessage(task.job);
    }
    for (const worker of idle) worker.unref();
  }

  function fail(error: unknown): void {
    closed = true;
    for (const task of [...running.values(), ...waiting.splice(0)]) task.reject(error);
    running.clear();
  }

  return {
    threads: workers.length,
    run(job) {
      const result = new Promise<never>((resolve, reject) => {
        if (closed) return reject(new Error("the threads that quantize have ended"));
        waiting.push({ job, resolve, reject });
        next();
      });
      // Work that was started ahead may fail when nobody waits for it any more.
      result.catch(() => undefined);
      return result;
    },
    async close() {
      fail(new Error("the threads that quantize have ended"));
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

function rebuilt({ name, message }: { readonly name: string; readonly message: string }): Error {
  if (name === "UsageError") return new UsageError(message);
  return name === "UnsupportedError" ? new UnsupportedError(message) : new Error(message);
}

/** The worker's module: beside this one as source, an entry of its own in dist, whose chunks lie one folder down. */
function workerEntry(): URL {
  const candidates = import.meta.url.endsWith(".ts")
    ? ["./worker.node.ts"]
    : ["./quantize-worker.js", "../quantize-worker.js"];
  const found = candidates.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (!found) throw new Error(`quantize-worker.js is missing beside ${import.meta.url}`);
  return found;
}
