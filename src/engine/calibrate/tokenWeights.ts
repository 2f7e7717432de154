import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { decoderGradient, sequencesAtOnce } from "../gradient/decoder.ts";
import { fisherLoss } from "../gradient/fisherLoss.ts";
import { longestOf, type Sequences } from "../sequences.ts";

export interface TokenWeightsRun {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  /** All that calibration reads. */
  readonly sequences: Sequences;
  /** Tokens to walk back over, from the beginnings of sequences. */
  readonly gradientTokens: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Of a sequence: attention's gradient takes the square of it. */
const MOST_TOKENS = 256;
/** What gradients say, beside all tokens alike: few tokens have gradients, and a few of those have most of them. */
const SHARE = 0.5;

/**
 * How much an error of a layer's output at each token matters: the mean square of the gradient of the divergence there,
 * blended with 1, by weight tensor, float32 [tokens of all sequences] of mean 1. Hessians of inputs that are so weighted
 * are the loss of a weight's errors with fewer assumptions (GuidedQuant, arXiv:2505.07004): all heads attend to a
 * sequence's first token, so errors of its key and value reach every other token. Layers that read one input and have
 * one role, gate and up, share their weights.
 */
export async function tokenWeights(run: TokenWeightsRun): Promise<Map<string, Float32Array>> {
  const { spec, sequences, gradientTokens } = run;
  const chosen = choose(sequences, gradientTokens);
  const squares = new Map<string, Float32Array[]>();
  const batch = sequencesAtOnce(
    spec,
    chosen.map(({ ids }) => ids),
  );
  for (let at = 0; at < chosen.length; at += batch) {
    const part = chosen.slice(at, at + batch);
    await decoderGradient({
      ...run,
      sequences: part.map(({ ids }) => ids),
      loss: fisherLoss(spec.vocabularySize, at),
      onProgress: (done, total) => run.onProgress?.(at + (part.length * done) / total, chosen.length),
      observer: {
        linear({ weight, rows }, sequence, _, dOut) {
          if (weight === spec.head.weight) return;
          const all = squares.get(weight) ?? [];
          squares.set(weight, all);
          const place = at + sequence;
          all[place] ??= new Float32Array(part[sequence].ids.length);
          for (let i = 0; i < dOut.length; i++) all[place][Math.floor(i / rows)] += dOut[i] ** 2;
        },
      },
    });
  }
  const starts = startsOf(sequences);
  const weights = new Map<string, Float32Array>();
  for (const names of alike(spec)) {
    const blended = new Float32Array(starts.at(-1)!).fill(1 - SHARE);
    const parts = chosen.map(({ ids }, place) =>
      Float64Array.from(ids, (_, t) => names.reduce((sum, name) => sum + squares.get(name)![place][t], 0)),
    );
    const total = parts.reduce((sum, part) => part.reduce((a, b) => a + b, sum), 0);
    const scale = total > 0 ? (SHARE * blended.length) / total : 0;
    for (const [place, { sequence }] of chosen.entries()) {
      for (const [t, square] of parts[place].entries()) blended[starts[sequence] + t] += scale * square;
    }
    for (const name of names) weights.set(name, blended);
  }
  return weights;
}

/** Beginnings of sequences from all over. */
function choose(sequences: Sequences, tokens: number) {
  const longest = longestOf(sequences);
  const count = Math.min(sequences.length, Math.ceil(tokens / Math.min(MOST_TOKENS, longest)));
  return Array.from({ length: count }, (_, i) => {
    const sequence = Math.floor((i * sequences.length) / count);
    return { sequence, ids: sequences[sequence].slice(0, MOST_TOKENS) };
  });
}

/** Where each sequence begins among all tokens, and their number. */
function startsOf(sequences: Sequences): number[] {
  const starts = [0];
  for (const { length } of sequences) starts.push(starts.at(-1)! + length);
  return starts;
}

/** Weight tensors that share token weights. */
function alike({ layers }: DecoderSpec): string[][] {
  return layers
    .flatMap(({ attention: { q, k, v, o }, mlp: { gate, up, down } }) => [
      [q],
      [k],
      [v],
      [o],
      [gate, up],
      [down],
    ])
    .map((linears) => [...new Set(linears.map(({ weight }) => weight))]);
}
