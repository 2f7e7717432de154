import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { divergence, divergenceGradient, summarizeRow } from "../evaluate/softmax.ts";
import { type LogitsGradient, lastStreams } from "../gradient/decoder.ts";
import { LogitsOf } from "../gradient/logits.ts";
import { type Sequences, tokensOf } from "../sequences.ts";

/**
 * The Kullback-Leibler divergence of logits from the float model's as a loss, summed over tokens and times `factor`.
 * `teacher` gives the float model's logits of its streams, one for each sequence.
 */
export function divergenceLoss(
  spec: DecoderSpec,
  teacher: LogitsOf,
  streams: readonly Float32Array[],
  factor: number,
): LogitsGradient {
  const size = spec.vocabularySize;
  return async (logits, sequence, first) => {
    const result = new Float32Array(logits.length);
    const rows = logits.length / size;
    for (let row = 0; row < rows; row += teacher.rows) {
      const count = Math.min(teacher.rows, rows - row);
      const expected = await teacher.of(streams[sequence], first + row, count);
      const actual = logits.subarray(row * size, (row + count) * size);
      const target = result.subarray(row * size, (row + count) * size);
      for (let at = 0; at < expected.length; at += size) {
        const p = summarizeRow(expected, at, size);
        const q = summarizeRow(actual, at, size);
        divergenceGradient(expected, p, actual, q, at, size, factor, target);
      }
    }
    return result;
  };
}

export interface DivergencePass {
  readonly spec: DecoderSpec;
  readonly backend: Backend;
  /** Logits of the float model. */
  readonly teacher: LogitsOf;
  readonly student: Checkpoint;
  readonly sequences: Sequences;
  /** The float model's, of each sequence. */
  readonly streams: readonly Float32Array[];
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Mean Kullback-Leibler divergence of the student's predictions from the float model's, in nats per token. */
export async function meanDivergence(pass: DivergencePass): Promise<number> {
  const { spec, backend, teacher, sequences, signal } = pass;
  const size = spec.vocabularySize;
  const found = await lastStreams({ ...pass, checkpoint: pass.student });
  const student = await LogitsOf.load(spec, pass.student, backend, teacher.rows);
  let sum = 0;
  try {
    for (const [s, { length }] of sequences.entries()) {
      for (let at = 0; at < length; at += teacher.rows) {
        signal?.throwIfAborted();
        const rows = Math.min(teacher.rows, length - at);
        const expected = await teacher.of(pass.streams[s], at, rows);
        const actual = await student.of(found[s], at, rows);
        for (let row = 0; row < rows * size; row += size) {
          const [p, q] = [summarizeRow(expected, row, size), summarizeRow(actual, row, size)];
          sum += divergence(expected, p, actual, q, row, size);
        }
      }
    }
  } finally {
    student.free();
  }
  return sum / tokensOf(sequences);
}
