import { CheckpointError } from "../errors.ts";

/** A token that is cut out of the text before the model sees it; most of them are special. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Control tokens: left out of decoded text, and not recognized in text from strangers. */
  readonly special: boolean;
  /** Matched against the normalized text. */
  readonly normalized: boolean;
  /** Only between characters that form no word with it. */
  readonly singleWord: boolean;
  /** Swallows the white space before it. */
  readonly leftStrip: boolean;
  /** Swallows the white space after it. */
  readonly rightStrip: boolean;
}

/** A stretch of ordinary text, or an added token; `start` is its offset in the text that was split. */
export type Section =
  | { readonly start: number; readonly text: string; readonly token?: undefined }
  | { readonly start: number; readonly token: AddedToken };

/** Reads the `added_tokens` section of a tokenizer.json. */
export function readAddedTokens(section: unknown): AddedToken[] {
  if (section === undefined || section === null) return [];
  if (!Array.isArray(section)) throw new CheckpointError("tokenizer.json", "added_tokens is not a list");
  return section.map((entry: Record<string, unknown> | null, index) => {
    if (typeof entry?.content !== "string" || !Number.isInteger(entry.id)) {
      throw new CheckpointError("tokenizer.json", `added_tokens[${index}] lacks a content or an id`);
    }
    const special = entry.special === true;
    return {
      id: entry.id as number,
      content: entry.content,
      special,
      normalized: typeof entry.normalized === "boolean" ? entry.normalized : !special,
      singleWord: entry.single_word === true,
      leftStrip: entry.lstrip === true,
      rightStrip: entry.rstrip === true,
    };
  });
}

/**
 * Makes a function that splits text at added tokens: the leftmost occurrence, the longest token there.
 * `spelling` says how a token looks in the text (normalized or not).
 */
export function createSplitter(
  tokens: readonly AddedToken[],
  spelling: (token: AddedToken) => string = (token) => token.content,
): (text: string) => Section[] {
  const bySpelling = new Map<string, AddedToken>();
  for (const token of tokens) if (spelling(token) !== "") bySpelling.set(spelling(token), token);
  if (bySpelling.size === 0) return (text) => (text === "" ? [] : [{ start: 0, text }]);
  const alternatives = [...bySpelling.keys()].sort((a, b) => b.length - a.length).map(escapeRegex);
  const pattern = new RegExp(alternatives.join("|"), "g");

  return (text) => {
    const sections: Section[] = [];
    let done = 0;
    for (const match of text.matchAll(pattern)) {
      const token = bySpelling.get(match[0])!;
      let start = match.index;
      let end = start + match[0].length;
      if (start < done) continue;
      if (token.singleWord && (endsInWord(text.slice(done, start)) || startsWord(text.slice(end, end + 2)))) {
        continue;
      }
      if (token.leftStrip) while (start > done && isSpace(text[start - 1])) start--;
      if (token.rightStrip) while (end < text.length && isSpace(text[end])) end++;
      if (start > done) sections.push({ start: done, text: text.slice(done, start) });
      sections.push({ start, token });
      done = end;
    }
    if (done < text.length) sections.push({ start: done, text: text.slice(done) });
    return sections;
  };
}

/** Unicode's white space; JavaScript's `trim` and `\s` differ in U+0085 and U+FEFF. */
function isSpace(character: string): boolean {
  return /\p{White_Space}/u.test(character);
}

function endsInWord(text: string): boolean {
  return /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]$/u.test(text.slice(-2));
}

function startsWord(text: string): boolean {
  return /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u.test(text);
}

function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
