import { CheckpointError, UnsupportedError } from "../errors.ts";
import { byteToken } from "./bpe.ts";

/**
 * How a tokenizer's `decoder` section turns tokens into text, reduced to what generating models use:
 * each token stands for some bytes, and the text is their concatenation read as UTF-8.
 */
export interface TokenSpelling {
  /** The bytes that a token of the model's vocabulary (no added token) stands for. */
  bytesOf(token: string): Uint8Array;
  /** Whether a space at the very beginning of the text is an artifact of encoding and is dropped. */
  readonly dropsLeadingSpace: boolean;
}

type Config = Record<string, unknown>;

/**
 * Reads the `decoder` section of a tokenizer.json: byte-level, or SentencePiece with byte fallback.
 *
 * @throws UnsupportedError for decoders of other kinds (WordPiece, CTC, word suffixes).
 */
export function readSpelling(decoder: unknown): TokenSpelling {
  const stages = flatten(decoder, 0);
  const types = stages.map((stage) => stage.type);
  if (types.includes("ByteLevel")) return byteLevelSpelling();
  let marker = "\u2581";
  let dropsLeadingSpace = false;
  let fallsBack = false;
  for (const stage of stages) {
    if (stage.type === "Metaspace") {
      if (typeof stage.replacement === "string") marker = stage.replacement;
      dropsLeadingSpace = (stage.prepend_scheme ?? "always") !== "never" && stage.add_prefix_space !== false;
    } else if (stage.type === "Replace") {
      const pattern = stage.pattern as { String?: unknown } | undefined;
      if (typeof pattern?.String !== "string" || stage.content !== " ") throw unsupported(types);
      marker = pattern.String;
    } else if (stage.type === "Strip") {
      if (stage.content !== " " || stage.start !== 1 || stage.stop !== 0) throw unsupported(types);
      dropsLeadingSpace = true;
    } else if (stage.type === "ByteFallback") {
      fallsBack = true;
    } else if (stage.type !== "Fuse") {
      throw unsupported(types);
    }
  }
  if (!types.includes("Metaspace") && !types.includes("Replace")) throw unsupported(types);
  return sentencePieceSpelling(marker, fallsBack, dropsLeadingSpace);
}

function flatten(decoder: unknown, depth: number): Config[] {
  if (decoder === null || decoder === undefined) return [];
  if (typeof decoder !== "object" || depth > 32) {
    throw new CheckpointError("tokenizer.json", "decoder is malformed or nested too deeply");
  }
  const stage = decoder as Config;
  if (stage.type !== "Sequence") return [stage];
  const stages = Array.isArray(stage.decoders) ? stage.decoders : [];
  return stages.flatMap((inner) => flatten(inner, depth + 1));
}

function unsupported(types: unknown[]): UnsupportedError {
  return new UnsupportedError(
    `tokenizer.json: decoder [${types.join(", ")}] is not supported; supported are ByteLevel, Metaspace, ` +
      "and Replace with ByteFallback, Fuse and Strip of one leading space",
  );
}

/**
 * GPT-2's spelling of bytes: printable Latin-1 characters stand for themselves, the other 68 bytes for the
 * characters from U+0100 on, in order.
 */
function byteLevelSpelling(): TokenSpelling {
  const byteOf = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    byteOf.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  const utf8 = new TextEncoder();
  return {
    bytesOf(token) {
      const bytes = new Uint8Array(token.length);
      for (let i = 0; i < token.length; i++) {
        const byte = byteOf.get(token[i]);
        if (byte === undefined) return utf8.encode(token);
        bytes[i] = byte;
      }
      return bytes;
    },
    dropsLeadingSpace: false,
  };
}

function sentencePieceSpelling(
  marker: string,
  fallsBack: boolean,
  dropsLeadingSpace: boolean,
): TokenSpelling {
  const utf8 = new TextEncoder();
  const bytes = new Map(Array.from({ length: fallsBack ? 256 : 0 }, (_, byte) => [byteToken(byte), byte]));
  return {
    bytesOf(token) {
      const byte = bytes.get(token);
      return byte === undefined ? utf8.encode(token.replaceAll(marker, " ")) : Uint8Array.of(byte);
    },
    dropsLeadingSpace,
  };
}
