/**
 * Zero-shot tasks: their files, and their prompts as lm-evaluation-harness writes them.
 *
 * @module
 */
import { UsageError } from "../../errors.ts";

export type TaskName = "lambada" | "piqa";

/** A context and the texts that might follow it. */
export interface Item {
  readonly context: string;
  /** What follows the context, the space between included. */
  readonly continuations: readonly string[];
  /** Characters of each continuation, by which its log probability is divided for `accuracyNormalized`. */
  readonly lengths: readonly number[];
  /** Index of the right one. */
  readonly answer: number;
}

export interface Task {
  readonly name: TaskName;
  /** Whether items offer a choice; otherwise the one continuation counts when greedy decoding finds it. */
  readonly choice: boolean;
  readonly needsLabels: boolean;
  /**
   * Reads a task's file, at most `limit` items of it.
   *
   * @param file its name, for messages.
   * @throws UsageError naming file and line.
   */
  readonly parse: (file: string, text: string, labels: string | undefined, limit: number) => Item[];
}

export const tasks: Readonly<Record<TaskName, Task>> = {
  lambada: { name: "lambada", choice: false, needsLabels: false, parse: parseLambada },
  piqa: { name: "piqa", choice: true, needsLabels: true, parse: parsePiqa },
};

/** `{"text"}` a line: the last word is to be guessed (task lambada_openai). */
function parseLambada(file: string, text: string, _labels: string | undefined, limit: number): Item[] {
  return records(file, text, ["text"], limit).map(([passage]) => {
    const space = Math.max(0, passage.lastIndexOf(" "));
    const word = passage.slice(space).trimStart();
    return item(passage.slice(0, space), [word], 0);
  });
}

/** `{"goal", "sol1", "sol2"}` a line and, in a file beside it, the right one's index (task piqa). */
function parsePiqa(file: string, text: string, labels: string | undefined, limit: number): Item[] {
  const answers = (labels ?? "").trimEnd().split(/\r?\n/);
  const items = records(file, text, ["goal", "sol1", "sol2"], limit).map(([goal, ...solutions], i) => {
    if (answers[i] !== "0" && answers[i] !== "1") {
      const found = answers[i] === undefined ? "missing" : JSON.stringify(answers[i]);
      throw new UsageError(`the labels of ${file}: line ${i + 1} is ${found}; each line must be 0 or 1`);
    }
    return item(`Question: ${goal}\nAnswer:`, solutions, Number(answers[i]));
  });
  const lines = text.split("\n").filter((line) => line.trim() !== "").length;
  if (answers.length <= lines) return items;
  throw new UsageError(
    `the labels of ${file}: ${answers.length} for ${lines} items; name its own with --labels FILE`,
  );
}

function item(context: string, choices: readonly string[], answer: number): Item {
  const continuations = choices.map((choice) => ` ${choice}`);
  return { context, continuations, lengths: choices.map((choice) => [...choice].length), answer };
}

/** The named texts of every line of a JSON Lines file. */
function records(file: string, text: string, fields: readonly string[], limit: number): string[][] {
  const found: string[][] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (found.length === limit) break;
    if (line.trim() === "") continue;
    found.push(fieldsOf(line, fields, `${file}: line ${i + 1}`));
  }
  if (found.length === 0) throw new UsageError(`${file}: holds no items; give a JSON Lines file`);
  return found;
}

function fieldsOf(line: string, fields: readonly string[], place: string): string[] {
  let record: Record<string, unknown> | null;
  try {
    record = JSON.parse(line);
  } catch (cause) {
    throw new UsageError(`${place}: is not JSON (${(cause as Error).message})`, { cause });
  }
  return fields.map((field) => {
    const value = record?.[field];
    if (typeof value === "string") return value;
    throw new UsageError(`${place}: has no text "${field}"; this task's lines have ${fields.join(", ")}`);
  });
}
