import type { Tokenizer } from "./tokenizer.ts";

export interface DetokenizerOptions {
  /** Leaves special tokens out. Default true. */
  readonly skipSpecialTokens?: boolean;
  /**
   * The tokens continue a text, so that a space at their beginning belongs to it (SentencePiece
   * tokenizers would drop it). Default false.
   */
  readonly continuesText?: boolean;
}

/** Turns a stream of tokens into a stream of text. */
export interface Detokenizer {
  /**
   * The text that is certain once this token is known, possibly empty: a character whose bytes are spread
   * over several tokens is held back until it is complete.
   */
  push(id: number): string;
  /** The rest: U+FFFD if the tokens ended within a character. The detokenizer is then as new. */
  flush(): string;
}

/**
 * Makes an incremental detokenizer: the pushes and the flush together are
 * `tokenizer.decode(ids, { skipSpecialTokens })`.
 */
export function createDetokenizer(tokenizer: Tokenizer, options: DetokenizerOptions = {}): Detokenizer {
  const skipsSpecial = options.skipSpecialTokens ?? true;
  const reader = new TextDecoder("utf-8", { ignoreBOM: true });
  const dropsFirstSpace = tokenizer.dropsLeadingSpace && !options.continuesText;
  let atStart = dropsFirstSpace;

  function emit(text: string): string {
    if (!atStart || text === "") return text;
    atStart = false;
    return text.startsWith(" ") ? text.slice(1) : text;
  }

  return {
    push(id) {
      if (skipsSpecial && tokenizer.isSpecial(id)) return "";
      return emit(reader.decode(tokenizer.tokenBytes(id), { stream: true }));
    },
    flush() {
      const text = emit(reader.decode());
      atStart = dropsFirstSpace;
      return text;
    },
  };
}
