import { dequantizeIQ4_NL, dequantizeIQ4_XS, dequantizeMXFP4 } from "./dequantize/codebook4.ts";
import type { Dequantize } from "./dequantize/dequantize.ts";
import { dequantizeBF16, dequantizeF16, dequantizeF32 } from "./dequantize/float.ts";
import { dequantizeIQ1_M, dequantizeIQ1_S } from "./dequantize/iq1.ts";
import { dequantizeIQ2_S, dequantizeIQ2_XS, dequantizeIQ2_XXS } from "./dequantize/iq2.ts";
import { dequantizeIQ3_S, dequantizeIQ3_XXS } from "./dequantize/iq3.ts";
import {
  dequantizeQ2_K,
  dequantizeQ3_K,
  dequantizeQ4_K,
  dequantizeQ5_K,
  dequantizeQ6_K,
} from "./dequantize/kQuants.ts";
import {
  dequantizeQ4_0,
  dequantizeQ4_1,
  dequantizeQ5_0,
  dequantizeQ5_1,
  dequantizeQ8_0,
} from "./dequantize/legacy.ts";
import { dequantizeTQ1_0, dequantizeTQ2_0 } from "./dequantize/ternary.ts";

/** How a GGUF tensor type stores its weights. */
export interface GgufType {
  readonly name: string;
  /** Weights in a block; rows hold whole blocks. */
  readonly blockSize: number;
  /** Bytes in a block. */
  readonly blockBytes: number;
  readonly dequantize: Dequantize;
}

const type = (name: string, blockSize: number, blockBytes: number, dequantize: Dequantize): GgufType => ({
  name,
  blockSize,
  blockBytes,
  dequantize,
});

/** The tensor types that can be read, by their number in the file. */
export const GGUF_TYPES: ReadonlyMap<number, GgufType> = new Map([
  [0, type("F32", 1, 4, dequantizeF32)],
  [1, type("F16", 1, 2, dequantizeF16)],
  [2, type("Q4_0", 32, 18, dequantizeQ4_0)],
  [3, type("Q4_1", 32, 20, dequantizeQ4_1)],
  [6, type("Q5_0", 32, 22, dequantizeQ5_0)],
  [7, type("Q5_1", 32, 24, dequantizeQ5_1)],
  [8, type("Q8_0", 32, 34, dequantizeQ8_0)],
  [10, type("Q2_K", 256, 84, dequantizeQ2_K)],
  [11, type("Q3_K", 256, 110, dequantizeQ3_K)],
  [12, type("Q4_K", 256, 144, dequantizeQ4_K)],
  [13, type("Q5_K", 256, 176, dequantizeQ5_K)],
  [14, type("Q6_K", 256, 210, dequantizeQ6_K)],
  [16, type("IQ2_XXS", 256, 66, dequantizeIQ2_XXS)],
  [17, type("IQ2_XS", 256, 74, dequantizeIQ2_XS)],
  [18, type("IQ3_XXS", 256, 98, dequantizeIQ3_XXS)],
  [19, type("IQ1_S", 256, 50, dequantizeIQ1_S)],
  [20, type("IQ4_NL", 32, 18, dequantizeIQ4_NL)],
  [21, type("IQ3_S", 256, 110, dequantizeIQ3_S)],
  [22, type("IQ2_S", 256, 82, dequantizeIQ2_S)],
  [23, type("IQ4_XS", 256, 136, dequantizeIQ4_XS)],
  [29, type("IQ1_M", 256, 56, dequantizeIQ1_M)],
  [30, type("BF16", 1, 2, dequantizeBF16)],
  [34, type("TQ1_0", 256, 54, dequantizeTQ1_0)],
  [35, type("TQ2_0", 256, 66, dequantizeTQ2_0)],
  [39, type("MXFP4", 32, 17, dequantizeMXFP4)],
]);
