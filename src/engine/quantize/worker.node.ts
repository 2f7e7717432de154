/** What a thread of the pool runs: jobs from its port, one after another. */
import { parentPort } from "node:worker_threads";
import { createJobRunner, type Job } from "./job.ts";

/** A job's result, or why there is none. */
export type WorkerReply =
  | { readonly result: unknown }
  /** Classes do not survive the way between threads, names do. */
  | { readonly error: { readonly name: string; readonly message: string } };

const runJob = createJobRunner();

parentPort!.on("message", (job: Job) => {
  let reply: WorkerReply;
  try {
    reply = { result: runJob(job) };
  } catch (error) {
    const { name, message } = error as Error;
    reply = { error: { name, message } };
  }
  parentPort!.postMessage(reply, "result" in reply ? ownBuffers(reply.result) : []);
});

/** Buffers to move rather than copy: those of the result's arrays. Shared ones need neither. */
function ownBuffers(value: unknown): ArrayBuffer[] {
  const parts = ArrayBuffer.isView(value) ? [value] : Object.values(value as object);
  return parts.flatMap((part) =>
    ArrayBuffer.isView(part) && part.buffer instanceof ArrayBuffer ? [part.buffer] : [],
  );
}
