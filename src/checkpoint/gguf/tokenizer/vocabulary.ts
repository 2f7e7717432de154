import { CheckpointError } from "../../../errors.ts";
import type { NumberArray } from "../metadata.ts";
import type { Settings } from "../settings.ts";

/** `tokenizer.ggml.token_type` */
export const TokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** Tokens that text never turns into, only their role does. */
export function isSpecial(type: number): boolean {
  return type === TokenType.control || type === TokenType.unknown;
}

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: ArrayLike<number>;
  readonly scores: NumberArray | undefined;
  /** Text to id; of tokens that share a text, the first. */
  readonly ids: ReadonlyMap<string, number>;
}

export function readVocabulary(settings: Settings): Vocabulary {
  const key = "tokenizer.ggml.tokens";
  const tokens = settings.required(settings.strings(key), key);
  const types =
    settings.numbers("tokenizer.ggml.token_type") ?? new Uint8Array(tokens.length).fill(TokenType.normal);
  const scores = settings.numbers("tokenizer.ggml.scores");
  for (const [name, list] of Object.entries({ token_type: types, scores: scores ?? tokens })) {
    if (list.length !== tokens.length) {
      throw new CheckpointError(
        settings.file,
        `tokenizer.ggml.${name} has ${list.length} entries for ${tokens.length} tokens`,
      );
    }
  }
  const ids = new Map<string, number>();
  for (let id = 0; id < tokens.length; id++) if (!ids.has(tokens[id])) ids.set(tokens[id], id);
  return { tokens, types, scores, ids };
}

/** tokenizer.json's `added_tokens`: what is cut out of the text before anything else. */
export function addedTokens({ tokens, types }: Vocabulary, stripsRight: (token: string) => boolean) {
  const added: Record<string, unknown>[] = [];
  for (let id = 0; id < tokens.length; id++) {
    const type = types[id];
    const special = isSpecial(type);
    if (tokens[id] === "" || !(special || type === TokenType.userDefined)) continue;
    const rstrip = special && stripsRight(tokens[id]);
    added.push({
      id,
      content: tokens[id],
      single_word: false,
      lstrip: false,
      rstrip,
      normalized: false,
      special,
    });
  }
  return added;
}

/** tokenizer.json's `vocab` of a BPE model: own keys only, whatever the tokens are called. */
export function vocabObject({ ids }: Vocabulary): Record<string, number> {
  return Object.fromEntries(ids);
}
