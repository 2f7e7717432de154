import { UsageError } from "../errors.ts";
import type { chatFlags } from "./flags.ts";
import { generateOptions, loadModel } from "./model.ts";
import { repl } from "./repl.ts";
import type { Invocation } from "./verb.ts";

/** `halftone chat`: a conversation at the terminal. */
export async function chat({ operands: [name], flags }: Invocation<typeof chatFlags>): Promise<void> {
  const model = await loadModel(name, flags);
  try {
    if (!model.hasChatTemplate) {
      throw new UsageError(`${name}: has no chat template; use halftone run, which continues plain prompts`);
    }
    const options = generateOptions(flags);
    await repl({
      input: process.stdin,
      output: process.stdout,
      terminal: process.stdin.isTTY && process.stdout.isTTY,
      greeting: `${name}, context of ${model.context} tokens. /help lists the commands.`,
      system: flags.system,
      answer: (messages, signal) => model.generate(messages, { ...options, signal }),
    });
  } finally {
    model.dispose();
  }
}
