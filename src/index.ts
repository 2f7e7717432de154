/**
 * Halftone: low-bit language models. What Node and browsers share; `halftone` resolves to node.ts or browser.ts,
 * which add `load`.
 *
 * @module
 */
export type { Backend } from "./backends/backend.ts";
export type { Choice, Plan } from "./budget/plan.ts";
export type { Problem } from "./budget/problem.ts";
export { leastBudget, type SolveOptions, solve } from "./budget/solve.ts";
export type { ByteSource, Checkpoint, Tensor, TokenizerFiles } from "./checkpoint/checkpoint.ts";
export type { GenerateOptions, GenerationResult } from "./engine/generation.ts";
export { Generation } from "./engine/generation.ts";
export { Model, type ModelOptions } from "./engine/model.ts";
export { type PerplexityOptions, type PerplexityResult, perplexity } from "./engine/perplexity.ts";
export type { SamplerOptions } from "./engine/sampler/options.ts";
export { CheckpointError, HalftoneError, MemoryError, UnsupportedError, UsageError } from "./errors.ts";
export { ReferenceBackend } from "./ops/reference.ts";
export { openWasm } from "./ops/wasm.ts";
export type { ChatMessage } from "./text/chatTemplate.ts";
