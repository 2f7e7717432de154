/**
 * Byte-pair encoding of one pre-token (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909),
 * with the rules of Hugging Face's tokenizers: repeatedly merge the pair of lowest rank, the leftmost
 * among equals. O(n log n), so that a SentencePiece model may take a whole book as one pre-token.
 *
 * @module
 */

import { CheckpointError } from "../errors.ts";
import { createMergeQueue } from "./mergeQueue.ts";
import { createPairTable } from "./pairTable.ts";

/** Turns pre-tokens into ids. */
export interface TokenModel {
  /** Appends the ids of one pre-token to `ids`. */
  encode(word: string, ids: number[]): void;
}

/** The `model` section of a tokenizer.json whose type is BPE; its merges are checked by `createBpe`. */
export interface BpeConfig {
  readonly merges: readonly unknown[];
  readonly unk_token?: string | null;
  readonly fuse_unk?: boolean;
  readonly byte_fallback?: boolean;
  readonly ignore_merges?: boolean;
}

const CACHED_WORDS = 20_000;
const LONGEST_CACHED_WORD = 64;

/**
 * Builds the encoder from the model section and its vocabulary.
 *
 * @throws CheckpointError when a merge is malformed or names a token outside the vocabulary.
 */
export function createBpe(config: BpeConfig, vocabulary: ReadonlyMap<string, number>): TokenModel {
  const { table, merged } = readMerges(config.merges, vocabulary);
  const unknown = config.unk_token == null ? undefined : vocabulary.get(config.unk_token);
  const byteIds = config.byte_fallback ? readByteIds(vocabulary) : undefined;
  const utf8 = new TextEncoder();
  const queue = createMergeQueue();
  const cache = new Map<string, readonly number[]>();

  function symbolsOf(word: string): Int32Array {
    // A code point of n UTF-16 units has at most 3n bytes of UTF-8.
    const symbols = new Int32Array(byteIds ? word.length * 3 : word.length);
    let count = 0;
    for (const character of word) {
      const id = vocabulary.get(character);
      if (id !== undefined) {
        symbols[count++] = id;
        continue;
      }
      const bytes = byteIds && utf8.encode(character);
      if (bytes?.every((byte) => byteIds![byte] !== undefined)) {
        for (const byte of bytes) symbols[count++] = byteIds![byte]!;
      } else if (unknown !== undefined) {
        const fused = config.fuse_unk && count > 0 && symbols[count - 1] === unknown;
        if (!fused) symbols[count++] = unknown;
      }
    }
    return symbols.subarray(0, count);
  }

  /** Merges in place: `next` links the surviving positions, -1 ends. */
  function merge(symbols: Int32Array): Int32Array {
    const count = symbols.length;
    const next = Int32Array.from(symbols, (_, i) => (i + 1 < count ? i + 1 : -1));
    const previous = Int32Array.from(symbols, (_, i) => i - 1);
    const ranks = new Int32Array(count).fill(-1);

    function rankPair(position: number): void {
      const right = next[position];
      const rank = right === -1 ? -1 : table.rank(symbols[position], symbols[right]);
      ranks[position] = rank;
      if (rank !== -1) queue.push(rank, position);
    }

    for (let i = 0; i + 1 < count; i++) rankPair(i);
    while (queue.pop()) {
      const left = queue.position;
      // The pair that was queued is gone when either of its symbols has merged with another since.
      if (ranks[left] !== queue.rank) continue;
      const right = next[left];
      symbols[left] = merged[queue.rank];
      ranks[right] = -1;
      next[left] = next[right];
      if (next[left] !== -1) previous[next[left]] = left;
      rankPair(left);
      if (previous[left] !== -1) rankPair(previous[left]);
    }
    return next;
  }

  function encode(word: string, ids: number[]): void {
    const whole = config.ignore_merges ? vocabulary.get(word) : undefined;
    if (whole !== undefined) {
      ids.push(whole);
      return;
    }
    const known = cache.get(word);
    if (known) {
      for (const id of known) ids.push(id);
      return;
    }
    const start = ids.length;
    const symbols = symbolsOf(word);
    if (symbols.length === 0) return;
    const next = merge(symbols);
    for (let i = 0; i !== -1; i = next[i]) ids.push(symbols[i]);
    if (word.length <= LONGEST_CACHED_WORD) {
      if (cache.size >= CACHED_WORDS) cache.clear();
      cache.set(word, ids.slice(start));
    }
  }

  return { encode };
}

function readMerges(merges: readonly unknown[], vocabulary: ReadonlyMap<string, number>) {
  const lefts = new Int32Array(merges.length);
  const rights = new Int32Array(merges.length);
  const merged = new Int32Array(merges.length);
  for (let rank = 0; rank < merges.length; rank++) {
    const entry = merges[rank];
    const pair = typeof entry === "string" ? entry.split(" ") : entry;
    if (!Array.isArray(pair) || pair.length !== 2 || pair.some((part) => typeof part !== "string")) {
      throw new CheckpointError("tokenizer.json", `merge ${rank} is not a pair of tokens`);
    }
    const [left, right] = pair as [string, string];
    const ids = [left, right, left + right].map((token) => {
      const id = vocabulary.get(token);
      if (id === undefined) {
        throw new CheckpointError(
          "tokenizer.json",
          `merge ${rank} needs ${JSON.stringify(token)}, which is not in the vocabulary`,
        );
      }
      return id;
    });
    [lefts[rank], rights[rank], merged[rank]] = ids;
  }
  return { table: createPairTable(lefts, rights), merged };
}

function readByteIds(vocabulary: ReadonlyMap<string, number>): (number | undefined)[] {
  return Array.from({ length: 256 }, (_, byte) => vocabulary.get(byteToken(byte)));
}

/** How SentencePiece vocabularies spell a single byte: `<0x0A>`. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}
