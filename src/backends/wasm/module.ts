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

/** Compiles the kernels for the best SIMD that this engine has, or for the one asked for. */
export async function compileKernels(
  level?: SimdLevel,
): Promise<{ module: WebAssembly.Module; simd: SimdLevel }> {
  const choices: [SimdLevel, string][] = [
    ["relaxed", relaxedSimd],
    ["plain", plainSimd],
  ];
  for (const [simd, text] of choices) {
    if (level && level !== simd) continue;
    const binary = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    if (WebAssembly.validate(binary)) return { module: await WebAssembly.compile(binary), simd };
  }
  throw new UnsupportedError(
    `this engine has no WebAssembly SIMD with threads${level ? ` (${level})` : ""}; use Node 20, Chrome 91, Firefox 89, Safari 16.4 or later`,
  );
}
