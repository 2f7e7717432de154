import type { Generation } from "../engine/generation.ts";
import type { Model } from "../engine/model.ts";
import { UsageError } from "../errors.ts";
import type { SpeculationStatistics } from "../speculation/statistics.ts";
import type { ChatMessage } from "../text/chatTemplate.ts";
import { readStdin } from "./files.ts";
import type { Values } from "./flag.ts";
import type { runFlags } from "./flags.ts";
import { significant } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { generateOptions, loadModel } from "./model.ts";
import { print, printJson, remark } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone run`: answers one prompt, streaming. */
export async function run({ operands: [name, given], flags }: Invocation<typeof runFlags>): Promise<void> {
  const prompt = given === undefined || given === "-" ? await promptFromStdin() : given;
  if (prompt === "") throw new UsageError("the prompt is empty; give one after MODEL or on stdin");
  const model = await loadModel(name, flags);
  try {
    const signal = interruptible();
    const answer = model.generate(promptOf(model, prompt, flags), { ...generateOptions(flags), signal });
    await (flags.json ? printResult(answer) : stream(answer));
    signal.throwIfAborted();
  } finally {
    model.dispose();
  }
}

async function promptFromStdin(): Promise<string> {
  if (process.stdin.isTTY) remark("Type the prompt; Ctrl-D on an empty line ends it.");
  return readStdin();
}

function promptOf(
  model: Model,
  prompt: string,
  { raw, system }: Values<typeof runFlags>,
): string | ChatMessage[] {
  if (!raw && model.hasChatTemplate) {
    const user = { role: "user", content: prompt };
    return system === undefined ? [user] : [{ role: "system", content: system }, user];
  }
  if (system === undefined) return prompt;
  const reason = raw ? "--raw leaves it out" : "this model has none";
  throw new UsageError(`--system needs a chat template, and ${reason}; put its text into the prompt`);
}

async function stream(answer: Generation): Promise<void> {
  let text = "";
  for await (const piece of answer) {
    text += piece;
    await print(piece);
  }
  if (!text.endsWith("\n")) await print("\n");
  const { promptTokens, promptTokensPerSecond, completionTokens, tokensPerSecond, speculation } =
    await answer.result;
  remark(
    `${completionTokens} tokens, ${significant(tokensPerSecond)} tokens/s; ` +
      `prompt of ${promptTokens}, ${significant(promptTokensPerSecond)} tokens/s` +
      (speculation ? drafting(speculation) : ""),
  );
}

function drafting({ drafted, accepted, speedup }: SpeculationStatistics): string {
  if (drafted === 0) return "";
  const pay = speedup === null ? "" : `, ${significant(speedup)} times as fast`;
  return `; ${accepted} of ${drafted} drafted tokens accepted${pay}`;
}

async function printResult(answer: Generation): Promise<void> {
  const { tokens: _, ...result } = await answer.result;
  await printJson(result);
}
