import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Checkpoint } from "./checkpoint.ts";
import { unwritable } from "./outputFolder.node.ts";

/** Writes what a Hugging Face folder holds beside its weights: the config given, generation defaults, tokenizer. */
export async function writeModelFiles(
  folder: string,
  { generationConfig, tokenizer }: Pick<Checkpoint, "generationConfig" | "tokenizer">,
  config: Readonly<Record<string, unknown>>,
): Promise<void> {
  const write = async (file: string, value: unknown) => {
    const text = typeof value === "string" ? value : `${JSON.stringify(value, null, 2)}\n`;
    await writeFile(join(folder, file), text).catch((cause: unknown) => {
      throw unwritable(join(folder, file), cause);
    });
  };
  await write("config.json", config);
  if (Object.keys(generationConfig).length > 0) await write("generation_config.json", generationConfig);
  if (tokenizer === undefined) return;
  await write("tokenizer.json", tokenizer.tokenizer);
  await write("tokenizer_config.json", tokenizer.config);
  if (tokenizer.chatTemplate !== undefined) await write("chat_template.jinja", tokenizer.chatTemplate);
}
