import { CheckpointError, UnsupportedError } from "../errors.ts";

type Config = Record<string, unknown>;

/** GPT-2's split, which `ByteLevel` with `use_regex` stands for. */
const GPT2_SPLIT = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const DEEPEST_NESTING = 32;

/**
 * Rewrites the `pre_tokenizer` section of a tokenizer.json into an equivalent one that
 * `@huggingface/tokenizers` 0.2 executes as the original (Rust) tokenizers do. Where it differs:
 * `ByteLevel` takes JavaScript's `\s` (with U+FEFF, without U+0085) in place of Unicode's White_Space;
 * `Digits` knows ASCII digits only; `Metaspace` never splits at its marker; `Split` takes every
 * behavior but `Removed` for `Isolated`.
 *
 * @throws UnsupportedError for a split that cannot be expressed that way.
 */
export function rewritePreTokenizer(config: unknown, depth = 0): Config | null {
  if (config === null || config === undefined) return null;
  if (typeof config !== "object" || depth > DEEPEST_NESTING) {
    throw new CheckpointError("tokenizer.json", "pre_tokenizer is malformed or nested too deeply");
  }
  const stage = config as Config;
  switch (stage.type) {
    case "Sequence": {
      const stages = Array.isArray(stage.pretokenizers) ? stage.pretokenizers : [];
      return sequence(stages.map((inner) => rewritePreTokenizer(inner, depth + 1)));
    }
    case "ByteLevel":
      // The prefix space goes before the split, so such a stage stays whole.
      if (stage.use_regex === false || stage.add_prefix_space === true) return stage;
      return sequence([isolated(GPT2_SPLIT), { ...stage, use_regex: false }]);
    case "Digits":
      return isolated(stage.individual_digits ? "\\p{N}" : "\\p{N}+");
    case "Metaspace": {
      if (stage.split === false) return stage;
      const marker = spellOut(typeof stage.replacement === "string" ? stage.replacement : "\u2581");
      return sequence([stage, isolated(`${marker}[^${marker}]*|[^${marker}]+`)]);
    }
    case "Split":
      return rewriteSplit(stage);
    default:
      return stage;
  }
}

function rewriteSplit(stage: Config): Config {
  const behavior = String(stage.behavior ?? "Isolated").toLowerCase();
  const pattern = (stage.pattern ?? {}) as { Regex?: string; String?: string };
  if (stage.invert || behavior === "isolated" || behavior === "removed") return stage;
  const text = pattern.String;
  const source = pattern.Regex ?? (text === undefined ? undefined : spellOut(text));
  if (behavior === "contiguous" && source !== undefined) return isolated(`(?:${source})+`);
  if (text !== undefined && [...text].length === 1) {
    const other = `[^${spellOut(text)}]`;
    if (behavior === "mergedwithprevious") return isolated(`${other}*${spellOut(text)}|${other}+`);
    if (behavior === "mergedwithnext") return isolated(`${spellOut(text)}${other}*|${other}+`);
  }
  throw new UnsupportedError(
    `tokenizer.json: pre_tokenizer Split with behavior ${stage.behavior} and pattern ` +
      `${JSON.stringify(pattern)} is not supported; supported are Isolated, Removed, Contiguous, ` +
      "and the merging ones with a one-character string",
  );
}

function isolated(regex: string): Config {
  return { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false };
}

function sequence(pretokenizers: (Config | null)[]): Config {
  return { type: "Sequence", pretokenizers };
}

/** Spells characters by code point, which is safe inside and outside a character class. */
function spellOut(text: string): string {
  return Array.from(text, (character) => `\\x{${character.codePointAt(0)!.toString(16)}}`).join("");
}
