import { evaluate } from "../engine/evaluate/evaluate.ts";
import { type Task, tasks } from "../engine/evaluate/tasks.ts";
import { readTextFile, required } from "./files.ts";
import type { evalFlags } from "./flags.ts";
import { formatSeconds } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { loadModel } from "./model.ts";
import { print, printJson } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** Tokens of one step: twice the default, since nobody waits for the first of them. */
const CHUNK = 128;

/** `halftone eval`: zero-shot accuracy on a task. */
export async function evalVerb({ operands: [name], flags }: Invocation<typeof evalFlags>): Promise<void> {
  const { bos, json, limit = Infinity } = flags;
  const task = tasks[flags.task];
  const file = required(flags.data, "--data FILE");
  const text = await readTextFile(file, "--data");
  const items = task.parse(file, text, await readLabels(task, file, flags.labels), limit);
  // The evaluation makes a cache to its items' measure; the model's own stays unused.
  const model = await loadModel(name, { ...flags, context: 1, chunk: CHUNK });
  try {
    const { seconds, ...result } = await withProgress(task.name, (line) =>
      evaluate(model, task, items, {
        bos,
        signal: interruptible(),
        onProgress: (done, total) => line.update(done, total, `item ${done} of ${total}`),
      }),
    );
    if (json) return await printJson(result);
    const { accuracy, accuracyNormalized, standardError, perplexity } = result;
    const more = [
      ...(accuracyNormalized === null ? [] : [`by length ${accuracyNormalized.toFixed(4)}`]),
      ...(perplexity === null ? [] : [`perplexity of the answers ${perplexity.toFixed(3)}`]),
    ];
    await print(
      `${task.name}: accuracy ${accuracy.toFixed(4)} ± ${standardError.toFixed(4)}, ${more.join(", ")}\n` +
        `${result.items} items in ${formatSeconds(seconds)}\n`,
    );
  } finally {
    model.dispose();
  }
}

function readLabels(task: Task, file: string, labels: string | undefined): Promise<string | undefined> {
  if (!task.needsLabels) return Promise.resolve(undefined);
  return readTextFile(labels ?? `${file.replace(/\.[^./\\]*$/, "")}-labels.lst`, "--labels");
}
