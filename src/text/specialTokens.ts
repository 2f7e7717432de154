type Config = Readonly<Record<string, unknown>>;

/** Tokens that end a document or a speaker's turn, as published chat models spell them. */
const endTokens = [
  "<|im_end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<end_of_turn>",
  "<|end|>",
  "<|endoftext|>",
  "<|end_of_text|>",
  "<|end_of_turn|>",
  "<\uff5cend\u2581of\u2581sentence\uff5c>",
];

/** Reads a token of tokenizer_config.json, stored as a string or as an object with `content`. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

/**
 * Every id after which generation ends: tokenizer_config's `eos_token`, generation_config's
 * `eos_token_id` (a number or a list), and the well-known end tokens that the vocabulary holds as special.
 */
export function readEosIds(
  config: Config,
  generationConfig: Config,
  idOf: (token: string) => number | undefined,
  specials: ReadonlyMap<string, number>,
): ReadonlySet<number> {
  const ids = new Set<number>();
  const eos = tokenText(config.eos_token);
  const eosId = eos === undefined ? undefined : idOf(eos);
  if (eosId !== undefined) ids.add(eosId);
  for (const id of [generationConfig.eos_token_id].flat()) {
    if (typeof id === "number" && Number.isInteger(id) && id >= 0) ids.add(id);
  }
  for (const token of endTokens) {
    // In the harmony format <|end|> ends a message (the reasoning) and <|return|> the turn.
    if (token === "<|end|>" && specials.has("<|return|>")) continue;
    const id = specials.get(token);
    if (id !== undefined) ids.add(id);
  }
  return ids;
}

/** The beginning-of-sequence id, or undefined where the model has none. */
export function readBosId(
  config: Config,
  generationConfig: Config,
  idOf: (token: string) => number | undefined,
): number | undefined {
  const bos = tokenText(config.bos_token);
  if (bos !== undefined) return idOf(bos);
  // An explicit null says that there is none, whatever generation_config repeats (Qwen2).
  if (config.bos_token === null) return undefined;
  const id = generationConfig.bos_token_id;
  return typeof id === "number" && Number.isInteger(id) && id >= 0 ? id : undefined;
}
