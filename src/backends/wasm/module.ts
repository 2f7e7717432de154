import { UnsupportedError } from "../../errors.ts";
import { plainSimd, relaxedSimd } from "./kernels.generated.ts";

/** What the kernels' module exports. */
export interface Kernels {
  heapBase(): number;
  run(program: number): void;
  work(thread: number): void;
  packNibbles(codes: number, to: number, rows: number, columns: number, bits: number, padded: number): void;
  packBytes(codes: number, to: number, rows: number, columns: number, padded: number): void;
  packFields(codes: number, to: number, rows: number, perRow: number, width: number, k: number): void;
  packDirect(codes: number, to: number, rows: number, perRow: number, width: number): void;
  packBitPlanes(codes: number, to: number, rows: number, columns: number, width: number): void;
  narrowToHalf(from: number, to: number, count: number): void;
}

export type SimdLevel = "relaxed" | "plain";

const builds: Readonly<Record<SimdLevel, string>> = { relaxed: relaxedSimd, plain: plainSimd };

/** The binary of a build of the kernels. */
export function kernelBinary(simd: SimdLevel): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(builds[simd]), (c) => c.charCodeAt(0));
}

/** The best build that this engine can run; undefined when it can run none. */
export function availableSimd(): SimdLevel | undefined {
  return (["relaxed", "plain"] as const).find((simd) => WebAssembly.validate(kernelBinary(simd)));
}

/** Compiles the kernels for the best SIMD that this engine has, or for the one asked for. */
export async function compileKernels(
  level?: SimdLevel,
): Promise<{ module: WebAssembly.Module; simd: SimdLevel }> {
  const simd = level ?? availableSimd();
  if (simd && WebAssembly.validate(kernelBinary(simd)))
    return { module: await WebAssembly.compile(kernelBinary(simd)), simd };
  throw new UnsupportedError(
    `this engine has no WebAssembly SIMD with threads${level ? ` (${level})` : ""}; use Node 20, Chrome 110, Firefox 115, Safari 16.4 or later`,
  );
}
