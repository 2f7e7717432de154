import { isSpecial, TokenType, type Vocabulary } from "./vocabulary.ts";

/** Longest token that is taken apart, in UTF-16 units: bounds the pairs that a hostile list makes. */
const MAX_MERGED_LENGTH = 256;

/**
 * The merges that a SentencePiece BPE vocabulary implies: every way to make a token of two others, the
 * best-scored token first. SentencePiece merges the neighbours whose union scores best, which is the same.
 */
export function mergesFromScores(vocabulary: Vocabulary): [string, string][] {
  const { tokens, types, scores, ids } = vocabulary;
  const score = (id: number) => scores?.[id] ?? 0;
  const mergeable = (id: number | undefined) => id !== undefined && types[id] !== TokenType.byte;
  const found: { id: number; left: string; right: string }[] = [];
  for (let id = 0; id < tokens.length; id++) {
    const token = tokens[id];
    if (isSpecial(types[id]) || !mergeable(id)) continue;
    if (ids.get(token) !== id || token.length > MAX_MERGED_LENGTH) continue;
    for (let cut = 1; cut < token.length; cut++) {
      const left = token.slice(0, cut);
      const right = token.slice(cut);
      if (mergeable(ids.get(left)) && mergeable(ids.get(right))) found.push({ id, left, right });
    }
  }
  found.sort((a, b) => score(b.id) - score(a.id) || a.id - b.id);
  return found.map(({ left, right }) => [left, right]);
}
