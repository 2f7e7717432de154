import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { UnsupportedError, UsageError } from "../../src/errors.ts";
import { applyChatTemplate } from "../../src/text/chatTemplate.ts";
import { miniMindFiles } from "./miniMind.ts";

/** Rendered by transformers 5.23. */
const golden = JSON.parse(readFileSync(new URL("golden.chat.json", import.meta.url), "utf8"));
const templates = { minimind: miniMindFiles().chatTemplate, smollm2: golden.smollm2 };
const user = [{ role: "user", content: "Hi" }];

describe("applyChatTemplate", () => {
  for (const [index, example] of golden.cases.entries()) {
    test(`${example.model} as transformers, case ${index}`, () => {
      const template = templates[example.model as keyof typeof templates];
      const { messages, addGenerationPrompt } = example;
      const tools = example.tools ?? undefined;
      const options = { addGenerationPrompt, tools, bosToken: "<|im_start|>", eosToken: "<|im_end|>" };
      expect(applyChatTemplate(template, messages, options)).toBe(example.text);
    });
  }

  test("tells the date in English", () => {
    const now = new Date(2024, 6, 9, 15, 4, 5);
    const template = "{{ strftime_now('%d %B %Y, %a %-I:%M:%S %p, day %j %%') }}";
    expect(applyChatTemplate(template, user, { now })).toBe("09 July 2024, Tue 3:04:05 PM, day 191 %");
  });

  test("says what is wrong", () => {
    expect(() => applyChatTemplate(undefined, user)).toThrow(/no chat template.*plain prompt/);
    expect(() => applyChatTemplate("x", [])).toThrow(UsageError);
    expect(() => applyChatTemplate("{{ raise_exception('no system role') }}", user)).toThrow(
      /rejects.*no system role/,
    );
    expect(() => applyChatTemplate("{% if %}", user)).toThrow(UnsupportedError);
    expect(() => applyChatTemplate("{% for i in range(10 ** 12) %}x{% endfor %}", user)).toThrow(
      UnsupportedError,
    );
    expect(() => applyChatTemplate("{% for i in range(1000000000000) %}x{% endfor %}", user)).toThrow(
      UnsupportedError,
    );
  });
});
