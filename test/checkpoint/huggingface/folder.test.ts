import { expect, test } from "vitest";
import { openHuggingFace } from "../../../src/checkpoint/huggingface/folder.ts";
import { buildHeader } from "../../../src/checkpoint/safetensors/header.ts";
import { CheckpointError, UsageError } from "../../../src/errors.ts";
import { memoryFiles } from "../memoryFiles.ts";

const weights = buildHeader([]).bytes;
const base = {
  "config.json": { model_type: "llama" },
  "model.safetensors": weights,
  "tokenizer.json": { version: "1.0" },
};

test("special tokens become strings, wherever they are stored", async () => {
  const { tokenizer } = await openHuggingFace(
    memoryFiles({
      ...base,
      "special_tokens_map.json": { bos_token: { content: "<s>" }, unk_token: "<unk>", pad_token: null },
      "tokenizer_config.json": {
        eos_token: { content: "</s>", lstrip: false },
        unk_token: "<u>",
        additional_special_tokens: ["a", { content: "b" }],
      },
    }),
  );
  expect(tokenizer?.config).toEqual({
    bos_token: "<s>",
    eos_token: "</s>",
    unk_token: "<u>",
    additional_special_tokens: ["a", "b"],
  });
});

test.each([
  ["a string in tokenizer_config.json", { "tokenizer_config.json": { chat_template: "T" } }],
  [
    "a list of named ones",
    {
      "tokenizer_config.json": {
        chat_template: [
          { name: "tool_use", template: "U" },
          { name: "default", template: "T" },
        ],
      },
    },
  ],
  [
    "chat_template.jinja before the config",
    { "chat_template.jinja": "T", "tokenizer_config.json": { chat_template: "U" } },
  ],
  ["chat_template.json", { "chat_template.json": { chat_template: "T" } }],
])("the chat template is found as %s", async (_, files) => {
  const { tokenizer } = await openHuggingFace(memoryFiles({ ...base, ...files }));
  expect(tokenizer?.chatTemplate).toBe("T");
  expect(tokenizer?.config).not.toHaveProperty("chat_template");
});

test("a missing file is named, and so is what is there", async () => {
  await expect(openHuggingFace(memoryFiles({ "readme.md": "" }))).rejects.toThrow(
    "folder is no model: no config.json; it holds readme.md; name a Hugging Face model folder",
  );
  const pickled = memoryFiles({ "config.json": {}, "pytorch_model.bin": "" });
  await expect(openHuggingFace(pickled)).rejects.toThrow(/no model\.safetensors.*safe_serialization/);
  await expect(openHuggingFace(pickled)).rejects.toThrow(UsageError);
});

test.each([
  ["a truncated config", { "config.json": '{"model_type": "lla' }],
  ["a config that is a list", { "config.json": "[]" }],
  ["a tokenizer that is not UTF-8", { "tokenizer.json": Uint8Array.of(0x7b, 0xff, 0x7d) }],
  ["a chat template that is a number", { "tokenizer_config.json": { chat_template: 3 } }],
])("%s is a CheckpointError", async (_, files) => {
  await expect(openHuggingFace(memoryFiles({ ...base, ...files }))).rejects.toThrow(CheckpointError);
});

test.each([
  ["no map", {}, "no weight_map"],
  ["a path", { weight_map: { a: "../a.safetensors" } }, "no safetensors file beside it"],
  ["a missing shard", { weight_map: { a: "a.safetensors" } }, "lists a.safetensors, which is not beside it"],
  [
    "a tensor that its shard lacks",
    { weight_map: { a: "b.safetensors" } },
    "says a is in b.safetensors, it is not",
  ],
])("an index with %s is refused", async (_, index, message) => {
  const files = memoryFiles({
    "config.json": {},
    "b.safetensors": weights,
    "model.safetensors.index.json": index,
  });
  await expect(openHuggingFace(files)).rejects.toThrow(message);
});
