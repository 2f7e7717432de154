/**
 * Every flag of every verb. A word means the same everywhere.
 *
 * @module
 */
import { speculationModes } from "../speculation/mode.ts";
import { choice, number, numberOr, numbers, text, textOr, texts, toggle } from "./flag.ts";
import {
  budgetFlags,
  commonFlags,
  context,
  engineFlags,
  json,
  noBalance,
  output,
  samplingFlags,
  speculationFlags,
  threads,
  windowFlags,
} from "./sharedFlags.ts";

export const chatFlags = { ...engineFlags, context, ...speculationFlags, ...samplingFlags, ...commonFlags };

export const runFlags = {
  ...chatFlags,
  raw: toggle({ help: "continue the prompt as it is, without the chat template" }),
  json,
};

export const quantizeFlags = {
  output: output("folder to write; required"),
  scheme: textOr("nuq-4", {
    value: "SCHEME",
    help: "of the linear layers: nuq-2 to nuq-8, uniform-2 to -8, ...",
  }),
  embeddingScheme: textOr("uniform-8", {
    value: "SCHEME",
    help: "of embedding and output head; f32 leaves them as they are",
  }),
  plan: text({
    value: "FILE",
    environment: false,
    help: "schemes and fused layers as halftone plan MODEL -o FILE chose them",
  }),
  ...budgetFlags,
  noRotation: toggle({ help: "quantize in the original basis" }),
  noBalance,
  calibrate: texts({
    value: "own|FILE",
    environment: false,
    help: "round by the inputs that text gives: the model's own, or UTF-8 text like what it will read; FILE may be repeated",
  }),
  calibrationTokens: number(
    { from: 1024, to: 2 ** 30 },
    { help: "tokens made up, or taken evenly from the files", standard: "8192 of its own, 131072 of files" },
  ),
  gradientTokens: number(
    { from: 0 },
    {
      help: "of those, tokens whose gradients tell which errors matter; 0: all inputs count alike",
      standard: "8192, 0 with --for-compensation",
    },
  ),
  bos: choice(["auto", "always", "never"], "auto", {
    help: "begin every sequence to calibrate or tune on with BOS; auto: as the tokenizer's config says",
  }),
  noSequential: toggle({
    help: "calibrate with the float model's inputs, not those that quantized layers give: a third faster",
  }),
  forCompensation: text({
    value: "N|N%[,...]",
    environment: false,
    help: "calibrate for a model compensated by so many channels; needs --calibrate and --residual",
  }),
  blend: number(
    { from: 0, to: 1, whole: false, above: true },
    {
      environment: false,
      help: "share of all inputs in that calibration, beside what compensation leaves",
      standard: "0.1 at 2 bits, 0.3 at 3, 0.5 at 4",
    },
  ),
  tuneSteps: number(
    { from: 1, to: 1_000_000 },
    {
      environment: false,
      help: "afterwards tune row scales and norms towards the float model in so many steps, e.g. 60: better at the same size",
    },
  ),
  tuneTokens: number(
    { from: 1, to: 2 ** 22 },
    { environment: false, help: "tokens of such a step", standard: "1024" },
  ),
  tuneText: texts({
    value: "FILE",
    environment: false,
    help: "UTF-8 text to tune on, without it that of --calibrate FILE, or the model's own; may be repeated",
  }),
  residual: choice(["none", "2", "4", "8", "16"], "none", {
    help: "also store what rounding takes, in so many bits, for compensation when decoding",
  }),
  threads: number(threads, { help: "threads that compute; the result is the same", standard: "all cores" }),
  noResume: toggle({ help: "start anew what an unfinished run with the same options left" }),
  seed: numberOr(0, { from: 0, to: 2 ** 32 - 1 }, { help: "of the rotations" }),
  json,
  ...commonFlags,
};

export const planFlags = {
  ...budgetFlags,
  embeddingScheme: textOr("uniform-8", {
    value: "SCHEME",
    help: "of embedding and output head under --bits, which plans the linear layers alone",
  }),
  output: output("file to write the plan to, as JSON"),
  plot: text({
    value: "FILE",
    environment: false,
    help: "SVG to write: the mix over the blocks, or the frontier",
  }),
  frontier: toggle({ environment: false, help: "what every budget can buy: loss over bits and over speed" }),
  measure: text({
    value: "FILE",
    environment: false,
    help: "with --frontier: UTF-8 text to measure the perplexity of six mixes and of single schemes on",
  }),
  ...windowFlags,
  bos: choice(["auto", "always", "never"], "auto", {
    help: "begin each window, and each sequence of --calibrate, with BOS; auto follows the tokenizer's config",
  }),
  problem: text({
    value: "FILE",
    environment: false,
    help: "JSON problem to solve instead of a model's, see docs/planning.md",
  }),
  calibrate: texts({
    value: "own|FILE",
    environment: false,
    help: "plan for a quantization calibrated on the model's own text, or this UTF-8 text; FILE may be repeated",
  }),
  noBalance,
  threads: number(threads, { help: "threads that measure and will run the model", standard: "all cores" }),
  json,
  ...commonFlags,
};

export const sensitivitiesFlags = {
  method: choice(["gradient", "noise"], "gradient", {
    help: "all tensors from one pass back, or noise on one after another: 10 to 100 times as long",
  }),
  sequences: numberOr(16, { from: 1, to: 65_536 }, { help: "sequences to measure on" }),
  sequenceLength: number(
    { from: 1 },
    { help: "tokens of a sequence", standard: "256, or the model's context" },
  ),
  norms: numbers(
    { from: 0, to: 1, whole: false, above: true },
    { help: "of the noise, relative to the weights", standard: "0.1,0.2" },
  ),
  calibrate: texts({
    value: "own|FILE",
    environment: false,
    help: "UTF-8 text to measure on instead of own, the model's; FILE may be repeated",
  }),
  bos: choice(["auto", "always", "never"], "auto", {
    help: "begin every sequence of that text with BOS; auto: as the tokenizer's config says",
  }),
  noBalance,
  gains: toggle({ environment: false, help: "measure too what calibration leaves of each tensor's loss" }),
  losses: text({
    value: "SCHEME,...",
    environment: false,
    help: "quantize each tensor with these too, one at a time, and measure",
  }),
  around: text({
    value: "SCHEME",
    environment: false,
    help: "of all other tensors while --losses are measured",
    standard: "float",
  }),
  output: output("file to write, as JSON; halftone plan reads it with --sensitivities"),
  seed: numberOr(0, { from: 0, to: 2 ** 31 }, { help: "of samples and noise" }),
  threads: number(threads, { help: "threads that compute; the result is the same", standard: "all cores" }),
  json,
  ...commonFlags,
};

export const perplexityFlags = {
  text: text({ value: "FILE", environment: false, help: "UTF-8 text to score; required" }),
  ...windowFlags,
  against: text({
    value: "MODEL2",
    environment: false,
    help: "measure the divergence from this model on the same windows",
  }),
  ...engineFlags,
  json,
  ...commonFlags,
};

export const evalFlags = {
  task: choice(["lambada", "piqa"], "lambada", { help: "what to evaluate" }),
  data: text({ value: "FILE", environment: false, help: "the task's items, JSON Lines; required" }),
  labels: text({
    value: "FILE",
    environment: false,
    help: "the right answers of piqa, one a line",
    standard: "the data's name with -labels.lst",
  }),
  limit: number({ from: 1 }, { help: "items to evaluate", standard: "all" }),
  bos: choice(["auto", "always", "never"], "never", {
    help: "begin each context with BOS; auto follows the tokenizer's config",
  }),
  ...engineFlags,
  json,
  ...commonFlags,
};

export const paletteFlags = {
  schemes: text({
    value: "SCHEME,...",
    environment: false,
    help: "quantizers to measure",
    standard: "all",
  }),
  sequences: numberOr(
    1000,
    { from: 1, to: 1_000_000 },
    { help: "sequences of 256 weights for each, at least" },
  ),
  plot: text({ value: "FILE", environment: false, help: "SVG to write: error over bits, and over speed" }),
  speed: toggle({ environment: false, help: "measure too how fast the wasm backend multiplies with each" }),
  seed: numberOr(0, { from: 0, to: 2 ** 32 - 1 }, { help: "of the weights" }),
  threads: number(threads, { help: "threads that measure", standard: "all cores" }),
  json,
  ...commonFlags,
};

export const tuneFlags = {
  threads: number(threads, {
    help: "threads that compute; each number has a map of its own",
    standard: "all cores",
  }),
  output: output("write the map here instead of the cache"),
  slowdown: text({
    value: "N%",
    environment: false,
    help: "also find how many channels a model with a residual may compensate at this cost",
  }),
  residualStore: engineFlags.residualStore,
  explain: toggle({ environment: false, help: "print the space of bit partitions and why most are pruned" }),
  json,
  ...commonFlags,
};

export const logitsFlags = {
  ids: text({ value: "FILE", environment: false, help: "JSON array of token ids; required" }),
  output: output("safetensors file to write; required"),
  chunk: numberOr(64, { from: 1, to: 4096 }, { help: "tokens fed at a time through the KV cache" }),
  ...engineFlags,
  json,
  ...commonFlags,
};

export const inspectFlags = {
  all: toggle({ environment: false, help: "a row for every tensor; else equal layers share one" }),
  json,
  ...commonFlags,
};

export const benchFlags = {
  ...engineFlags,
  threads: numbers(threads, { help: "thread counts to compare", standard: "1 and all cores" }),
  promptTokens: numberOr(128, { from: 1 }, { help: "tokens of the prompt" }),
  decodeTokens: numberOr(64, { from: 1 }, { help: "tokens generated after it" }),
  speculate: choice(speculationModes, "off", {
    help: "also measure answers to texts with drafts made so, against answers without",
  }),
  draft: speculationFlags.draft,
  batch: numberOr(1, { from: 1, to: 32 }, { help: "answers that --speculate generates side by side" }),
  json,
  ...commonFlags,
};

export const convertFlags = {
  output: output("folder to write; required"),
  dtype: choice(["f32", "f16", "bf16"], "f32", { help: "how weights are stored" }),
  json,
  ...commonFlags,
};

export const hubFlags = { json, ...commonFlags };
