import type { StoredScheme } from "../../checkpoint/quantization.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { QuantizedRows } from "../quantize/job.ts";
import { pipeline } from "../quantize/pipeline.ts";
import type { Pool } from "../quantize/pool.node.ts";
import type { QuantizedWeights } from "./student.ts";

/** Decoded weights kept, as bytes; further ones are decoded whenever they are asked for. */
const KEPT_BYTES = 2 ** 31;
/** Weights of one job, about, in whole blocks of rows. */
const JOB_VALUES = 2 ** 20;
const ROW_UNIT = 16;

/** Decodes weights over all threads, and keeps as many as fit. */
export function decodedWeights(
  pool: Pool,
  stored: (name: string) => StoredScheme,
  read: (name: string) => Promise<QuantizedRows>,
): QuantizedWeights["decode"] {
  const kept = new Map<string, Float32Array>();
  let bytes = 0;
  const decode = async (name: string): Promise<Float32Array> => {
    const { scheme, rotation, shape } = stored(name);
    const [rows, columns] = shape;
    const { codes, scales } = await read(name);
    const quantizer = quantizerFor(parseScheme(scheme));
    const step = Math.max(1, Math.floor(JOB_VALUES / (columns * ROW_UNIT))) * ROW_UNIT;
    const starts = Array.from({ length: Math.ceil(rows / step) }, (_, i) => i * step);
    const part = (row: number) => {
      const [from, to] = [row, Math.min(rows, row + step)];
      const [first, last] = [from, to].map((each) => quantizer.codesByteLength(each, columns));
      return pool.run({
        ...({ kind: "decode", columns, stored: { scheme, rotation } } as const),
        codes: codes.slice(first, last),
        scales: scales.slice(from, to),
      });
    };
    const values = new Float32Array(rows * columns);
    for await (const [row, decoded] of pipeline(starts, 2 * pool.threads, part)) {
      values.set(decoded, row * columns);
    }
    return values;
  };
  return async (name) => {
    const known = kept.get(name);
    if (known) return known;
    const values = await decode(name);
    if (bytes + values.byteLength <= KEPT_BYTES) {
      kept.set(name, values);
      bytes += values.byteLength;
    }
    return values;
  };
}
