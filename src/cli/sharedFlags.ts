/**
 * Flags that several verbs share.
 *
 * @module
 */
import { MOST_THREADS } from "../backends/wasm/opcodes.ts";
import { DEFAULT_CACHE, keyValueTypes } from "../ops/attention/keyValue.ts";
import { speculationModes } from "../speculation/mode.ts";
import { biases, byteCount, choice, number, numberOr, text, texts, toggle } from "./flag.ts";

export const threads = { from: 1, to: MOST_THREADS };

export const commonFlags = {
  debug: toggle({ help: "show stack traces of errors" }),
};

export const json = toggle({ help: "print one JSON document on stdout" });
export const noBalance = toggle({
  help: "without the scaling of channels that lets data-free rounding lose less",
});
export const output = (help: string) => text({ value: "PATH", short: "o", environment: false, help });

export const engineFlags = {
  threads: number(threads, { help: "threads that compute", standard: "all cores" }),
  backend: choice(["wasm", "reference"], "wasm", { help: "what computes; reference is slow and plain" }),
  activations: choice(["int8", "int16", "float", "int4"], "int8", {
    help: "how quantized layers read their input",
  }),
  kvCache: choice(keyValueTypes, DEFAULT_CACHE, {
    help: "how keys and values are held; f16 halves their memory, int8 takes a quarter",
  }),
  noCompensation: toggle({ help: "leave out the residual of a model that came with one" }),
  channels: text({
    value: "N|N%[,...]",
    help: "input channels compensated of 1024, or a share; four for qkv, o, gate/up, down",
    standard: "what was tuned or planned, else 32",
  }),
  select: choice(["exact", "bucket", "static", "random"], "exact", {
    help: "how they are chosen; bucket and static need --profile",
  }),
  profile: text({
    value: "FILE",
    environment: false,
    help: "UTF-8 text to learn the layers' inputs from",
  }),
  residualStore: choice(["memory", "file"], "memory", {
    help: "where residual rows stay; file takes no memory and reads them at each step",
  }),
  policy: text({
    value: "FILE",
    help: "policy map to choose kernels by",
    standard: "what tune left in the cache",
  }),
};

export const context = number(
  { from: 1 },
  { help: "tokens that prompt and answer may have", standard: "the model's, at most 8192" },
);

export const samplingFlags = {
  temperature: numberOr(0, { from: 0, whole: false }, { help: "0 takes the likeliest token (greedy)" }),
  topK: number({ from: 0 }, { help: "sample among the N likeliest tokens; 0 is off" }),
  topP: number(
    { from: 0, to: 1, whole: false, above: true },
    { help: "sample among the likeliest tokens whose probabilities reach N; 1 is off" },
  ),
  minP: number(
    { from: 0, to: 1, whole: false },
    { help: "sample among tokens at least N times as likely as the likeliest; 0 is off" },
  ),
  repetitionPenalty: number(
    { from: 0, whole: false, above: true },
    { help: "above 1 makes tokens that occurred less likely; 1 is off" },
  ),
  presencePenalty: number(
    { from: -2, to: 2, whole: false },
    { help: "subtracted once from each token of the answer" },
  ),
  frequencyPenalty: number(
    { from: -2, to: 2, whole: false },
    { help: "subtracted from a token for each time it occurred in the answer" },
  ),
  logitBias: biases({ help: "added to the logits of tokens; -inf forbids one" }),
  seed: number({ from: 0 }, { help: "same seed, same answer", standard: "random" }),
  stop: texts({ value: "TEXT", help: "ends the answer, not part of it; may be repeated" }),
  maxTokens: number({ from: 1 }, { help: "most tokens of an answer", standard: "what the context leaves" }),
  system: text({ value: "TEXT", help: "system message of the conversation" }),
};

export const speculationFlags = {
  speculate: choice(speculationModes, "auto", {
    help: "who drafts tokens for the model to verify, several at a time; auto measures what pays",
  }),
  draft: number({ from: 1, to: 8 }, { help: "tokens of a draft", standard: "adapted to what is accepted" }),
};

/** What a device affords, and what a plan for it is made of. */
export const budgetFlags = {
  bits: number(
    { from: 1, to: 16, whole: false },
    { environment: false, help: "bits per weight of the linear layers, a mean over all of them" },
  ),
  memory: byteCount({ environment: false, help: "size of the weights' file, embedding and head included" }),
  speed: number(
    { from: 0, whole: false, above: true },
    { environment: false, help: "tokens per second to decode on this machine, all sequences together" },
  ),
  rows: text({
    value: "N%",
    environment: false,
    help: "buy residual rows too, where they are worth more than bits, for at most this share of a step's time",
  }),
  batch: numberOr(1, { from: 1, to: 64 }, { help: "sequences decoded side by side, for times" }),
  remeasure: toggle({
    environment: false,
    help: "measure times anew; they are kept by machine, engine and model shape",
  }),
  sensitivities: text({
    value: "FILE",
    environment: false,
    help: "how much each layer matters, as JSON",
    standard: "measured, and kept beside the model",
  }),
  sequences: numberOr(16, { from: 1, to: 65_536 }, { help: "sequences of 256 tokens to measure it on" }),
  schemes: text({
    value: "SCHEME,...",
    environment: false,
    help: "quantizers to choose from",
    standard: "all but tcq",
  }),
};

export const windowFlags = {
  context: numberOr(512, { from: 2 }, { help: "tokens per window, the BOS included" }),
  windows: number({ from: 1 }, { help: "windows to score", standard: "all whole ones" }),
  bos: choice(["auto", "always", "never"], "auto", {
    help: "begin each window with BOS; auto follows the tokenizer's config",
  }),
};
