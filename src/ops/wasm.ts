import { type Lowerings, WasmBackend, type WasmOptions } from "../backends/wasm/backend.ts";
import { lowerAdd } from "./add/wasm.ts";
import { lowerAttention } from "./attention/wasm.ts";
import { lowerEmbed } from "./embed/wasm.ts";
import { lowerGate } from "./gate/wasm.ts";
import { lowerGram } from "./gram/wasm.ts";
import { linearLoaderFor } from "./linear/load.ts";
import type { LinearPolicy } from "./linear/policy.ts";
import { linearLowering } from "./linear/wasm.ts";
import { lowerRmsNorm } from "./rmsNorm/wasm.ts";
import { lowerRopeStore } from "./ropeStore/wasm.ts";
import { lowerSoftcap } from "./softcap/wasm.ts";
import { lowerSuppress } from "./suppress/wasm.ts";

/** Every operation on the CPU but the one that a policy decides. */
const lowerings: Omit<Lowerings, "linear"> = {
  embed: lowerEmbed,
  rmsNorm: lowerRmsNorm,
  ropeStore: lowerRopeStore,
  attention: lowerAttention,
  gate: lowerGate,
  add: lowerAdd,
  softcap: lowerSoftcap,
  gram: lowerGram,
  suppress: lowerSuppress,
};

export interface CpuOptions extends WasmOptions {
  /** Which strategy multiplies which shape; without one, or where it does not know, the built-in order decides. */
  readonly policy?: LinearPolicy;
}

/** Opens the WebAssembly backend with all operations. */
export function openWasm({ policy, ...options }: CpuOptions = {}): Promise<WasmBackend> {
  return WasmBackend.open({ ...lowerings, linear: linearLowering(policy) }, linearLoaderFor(policy), options);
}
