/**
 * What the command line can do. The code of each verb is loaded when it is called.
 *
 * @module
 */
import * as flags from "./flags.ts";
import { defineVerb, type Verb } from "./verb.ts";

export const verbs: readonly Verb[] = [
  defineVerb({
    name: "run",
    summary: "answer one prompt, from the command line or from stdin",
    operands: ["MODEL", "[PROMPT]"],
    flags: flags.runFlags,
    example: 'halftone run ./model "What is the capital of France?"',
    load: async () => (await import("./run.ts")).run,
  }),
  defineVerb({
    name: "chat",
    summary: "converse with a model",
    operands: ["MODEL"],
    flags: flags.chatFlags,
    example: "halftone chat ./model --temperature 0.7",
    load: async () => (await import("./chat.ts")).chat,
  }),
  defineVerb({
    name: "quantize",
    summary: "write a quantized copy of a model",
    operands: ["MODEL"],
    flags: flags.quantizeFlags,
    example: "halftone quantize ./model -o ./model-4bit --scheme nuq-4",
    load: async () => (await import("./quantize.ts")).quantize,
  }),
  defineVerb({
    name: "plan",
    summary: "spend a budget of bits or seconds over layers",
    operands: [],
    flags: flags.planFlags,
    example: "halftone plan --problem problem.json -o plan.json",
    load: async () => (await import("./plan.ts")).plan,
  }),
  defineVerb({
    name: "perplexity",
    summary: "score a text",
    operands: ["MODEL"],
    flags: flags.perplexityFlags,
    example: "halftone perplexity ./model --text wiki.test.raw --windows 40",
    load: async () => (await import("./perplexity.ts")).perplexityVerb,
  }),
  defineVerb({
    name: "logits",
    summary: "token ids in, logits out: to compare engines",
    operands: ["MODEL"],
    flags: flags.logitsFlags,
    example: "halftone logits ./model --ids ids.json -o logits.safetensors --chunk 1",
    load: async () => (await import("./logits.ts")).logits,
  }),
  defineVerb({
    name: "inspect",
    summary: "architecture, tensors, bits per layer, size",
    operands: ["MODEL"],
    flags: flags.inspectFlags,
    example: "halftone inspect ./model",
    load: async () => (await import("./inspect.ts")).inspect,
  }),
  defineVerb({
    name: "bench",
    summary: "prefill and decode speed by thread count",
    operands: ["MODEL"],
    flags: flags.benchFlags,
    example: "halftone bench ./model --threads 1,2",
    load: async () => (await import("./bench.ts")).bench,
  }),
  defineVerb({
    name: "convert",
    summary: "write any model as a Hugging Face folder",
    operands: ["MODEL"],
    flags: flags.convertFlags,
    example: "halftone convert model.gguf -o ./model --dtype bf16",
    load: async () => (await import("./convert.ts")).convert,
  }),
  defineVerb({
    name: "pull",
    summary: "fetch a model from the Hugging Face hub into the shared cache",
    operands: ["OWNER/NAME[@REV][:QUANT]"],
    flags: flags.hubFlags,
    example: "halftone pull HuggingFaceTB/SmolLM2-135M-Instruct",
    load: async () => (await import("./pull.ts")).pullVerb,
  }),
  defineVerb({
    name: "list",
    summary: "models in the hub cache",
    operands: [],
    flags: flags.hubFlags,
    example: "halftone list",
    load: async () => (await import("./list.ts")).list,
  }),
  defineVerb({
    name: "show",
    summary: "what the hub cache holds of a model",
    operands: ["OWNER/NAME[@REV]"],
    flags: flags.hubFlags,
    example: "halftone show HuggingFaceTB/SmolLM2-135M-Instruct",
    load: async () => (await import("./show.ts")).show,
  }),
  defineVerb({
    name: "rm",
    summary: "remove a model from the hub cache",
    operands: ["OWNER/NAME[@REV][:QUANT]"],
    flags: flags.hubFlags,
    example: "halftone rm HuggingFaceTB/SmolLM2-135M-Instruct",
    load: async () => (await import("./rm.ts")).rm,
  }),
];
