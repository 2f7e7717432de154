import { type Lowerings, WasmBackend, type WasmOptions } from "../backends/wasm/backend.ts";
import { lowerAdd } from "./add/wasm.ts";
import { lowerAttention } from "./attention/wasm.ts";
import { lowerEmbed } from "./embed/wasm.ts";
import { lowerGate } from "./gate/wasm.ts";
import { lowerGram } from "./gram/wasm.ts";
import { linearLoader } from "./linear/load.ts";
import { lowerLinear } from "./linear/wasm.ts";
import { lowerRmsNorm } from "./rmsNorm/wasm.ts";
import { lowerRopeStore } from "./ropeStore/wasm.ts";
import { lowerSoftcap } from "./softcap/wasm.ts";

/** Every operation on the CPU. */
const lowerings: Lowerings = {
  embed: lowerEmbed,
  rmsNorm: lowerRmsNorm,
  linear: lowerLinear,
  ropeStore: lowerRopeStore,
  attention: lowerAttention,
  gate: lowerGate,
  add: lowerAdd,
  softcap: lowerSoftcap,
  gram: lowerGram,
};

/** Opens the WebAssembly backend with all operations. */
export function openWasm(options?: WasmOptions): Promise<WasmBackend> {
  return WasmBackend.open(lowerings, linearLoader, options);
}
