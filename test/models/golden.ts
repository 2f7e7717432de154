import { join } from "node:path";
import type { Backend } from "../../src/backends/backend.ts";
import type { KeyValueType } from "../../src/backends/operation.ts";
import type { Checkpoint, Tensor } from "../../src/checkpoint/checkpoint.ts";
import { openFile } from "../../src/checkpoint/node.ts";
import { openSafetensors } from "../../src/checkpoint/safetensors/reader.ts";
import { Runner } from "../../src/engine/runner.ts";
import { loadWeights, tieMissingHead } from "../../src/engine/weights.ts";
import { decoderFor } from "../../src/models/registry.ts";

/** What tools/fixtures/make-models.py wrote beside a model. */
export interface Golden {
  readonly ids: readonly number[];
  /** float32 [ids, vocabulary] */
  readonly logits: Float32Array;
  /** Of the first ids alone, where the rope depends on the length. */
  readonly short: Float32Array | undefined;
  /** What continues the first 32 ids. */
  readonly greedy: readonly number[];
}

export async function readGolden(folder: string, file = "golden.safetensors"): Promise<Golden> {
  const { tensors, close } = await openSafetensors(await openFile(join(folder, file)));
  const floats = async (tensor: Tensor | undefined) => tensor && (await tensor.readRows(0, tensor.shape[0]));
  const integers = async (name: string) => {
    const bytes = await tensors.get(name)!.readBytes!();
    return Array.from(new Int32Array(bytes.slice().buffer));
  };
  const golden = {
    ids: await integers("input_ids"),
    logits: (await floats(tensors.get("logits")))!,
    short: await floats(tensors.get("logits_short")),
    greedy: tensors.has("greedy") ? await integers("greedy") : [],
  };
  await close();
  return golden;
}

/** A decoder with float32 weights in a backend. */
export async function load(
  checkpoint: Checkpoint,
  backend: Backend,
  chunk = 128,
  cacheType?: KeyValueType,
): Promise<Runner> {
  const { source, config, tensors } = checkpoint;
  const spec = tieMissingHead(decoderFor(source, config, tensors), checkpoint);
  const weights = await loadWeights(spec, checkpoint, backend, "f32");
  return new Runner(spec, weights, backend, {
    sequences: 1,
    context: 128,
    chunk,
    cacheType,
    reading: { activations: "float" },
  });
}

/** Logits of all ids, fed in steps of `chunk`, turned as a sequence of all of them. */
export async function logitsOf(runner: Runner, ids: readonly number[], chunk: number): Promise<Float32Array> {
  const vocabulary = runner.spec.vocabularySize;
  const logits = new Float32Array(ids.length * vocabulary);
  for (let at = 0; at < ids.length; at += chunk) {
    const part = ids.slice(at, at + chunk);
    const positions = part.map((_, i) => at + i);
    logits.set(await runner.step({ ids: part, positions, length: ids.length }, "all"), at * vocabulary);
  }
  return logits;
}

/** The most likely continuation, through the cache; computed anew where a rope changes on the way. */
export async function continueGreedily(runner: Runner, prompt: readonly number[], count: number) {
  const ids = [...prompt];
  let next: number[] = ids;
  while (ids.length < prompt.length + count) {
    const crossed = runner.spec.ropes.some(({ border }) => border !== undefined && ids.length === border + 1);
    if (crossed) next = ids;
    const positions = next.map((_, i) => ids.length - next.length + i);
    const logits = await runner.step({ ids: next, positions }, "last");
    next = [logits.indexOf(logits.reduce((a, b) => Math.max(a, b)))];
    ids.push(next[0]);
  }
  return ids.slice(prompt.length);
}
