import { stat } from "node:fs/promises";
import { createSafetensors } from "../checkpoint/safetensors/writer.node.ts";
import type { Model } from "../engine/model.ts";
import { UsageError } from "../errors.ts";
import { decoderFor } from "../models/registry.ts";
import { readTextFile, required } from "./files.ts";
import type { logitsFlags } from "./flags.ts";
import { interruptible } from "./interrupt.ts";
import { loadModel, openModel } from "./model.ts";
import { print, printJson } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** `halftone logits`: the tensor `logits`, float32 [tokens, vocabulary], of given token ids. */
export async function logits({ operands: [name], flags }: Invocation<typeof logitsFlags>): Promise<void> {
  const idsFile = required(flags.ids, "--ids FILE");
  const output = required(flags.output, "-o PATH");
  if ((await stat(output).catch(() => undefined))?.isDirectory()) {
    throw new UsageError(`-o ${output}: is a folder; name a file`);
  }
  const ids = parseIds(await readTextFile(idsFile, "--ids"), idsFile);
  await checkLength(name, ids, idsFile);
  const model = await loadModel(name, { ...flags, context: ids.length });
  try {
    checkIds(ids, idsFile, model.spec.vocabularySize);
    await writeLogits(model, ids, output, interruptible());
  } finally {
    model.dispose();
  }
  const [tokens, vocabulary] = [ids.length, model.spec.vocabularySize];
  if (flags.json) await printJson({ file: output, tensor: "logits", shape: [tokens, vocabulary] });
  else await print(`${output}: logits [${tokens}, ${vocabulary}], float32\n`);
}

async function writeLogits(
  model: Model,
  ids: readonly number[],
  output: string,
  signal: AbortSignal,
): Promise<void> {
  const { runner, spec } = model;
  const shape = [ids.length, spec.vocabularySize];
  const writer = await createSafetensors(output, [{ name: "logits", dtype: "F32", shape }]);
  try {
    await withProgress("computing", async (line) => {
      for (let at = 0; at < ids.length; at += runner.chunk) {
        signal.throwIfAborted();
        const part = ids.slice(at, at + runner.chunk);
        const positions = part.map((_, i) => at + i);
        const rows = await runner.step({ ids: part, positions, length: ids.length }, "all");
        const bytes = new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength);
        await writer.write("logits", bytes, at * spec.vocabularySize * 4);
        line.update(at + part.length, ids.length);
      }
    });
    await writer.finish();
  } finally {
    await writer.abort();
  }
}

function parseIds(text: string, file: string): number[] {
  let ids: unknown;
  try {
    ids = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(
      `--ids ${file}: is not JSON (${(cause as Error).message}); give an array of token ids`,
      {
        cause,
      },
    );
  }
  if (!Array.isArray(ids) || ids.length === 0) {
    throw new UsageError(`--ids ${file}: holds no array of token ids; give one such as [1, 72, 101]`);
  }
  const bad = ids.findIndex((id) => !Number.isInteger(id) || id < 0);
  if (bad >= 0) {
    throw new UsageError(
      `--ids ${file}: entry ${bad} is ${JSON.stringify(ids[bad])}; token ids are whole numbers from 0`,
    );
  }
  return ids;
}

async function checkLength(name: string, ids: readonly number[], file: string): Promise<void> {
  const checkpoint = await openModel(name);
  const { source, config, tensors } = checkpoint;
  try {
    const { contextLength } = decoderFor(source, config, tensors);
    if (ids.length <= contextLength) return;
    throw new UsageError(
      `--ids ${file}: holds ${ids.length} token ids; this model takes at most ${contextLength}`,
    );
  } finally {
    await checkpoint.close();
  }
}

function checkIds(ids: readonly number[], file: string, vocabulary: number): void {
  const bad = ids.findIndex((id) => id >= vocabulary);
  if (bad < 0) return;
  throw new UsageError(
    `--ids ${file}: entry ${bad} is ${ids[bad]}; this model's token ids end at ${vocabulary - 1}`,
  );
}
