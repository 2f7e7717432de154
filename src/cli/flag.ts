/**
 * Flags as data: what each is called, what it takes and how its text becomes a value.
 *
 * @module
 */
import { UsageError } from "../errors.ts";

export interface Flag<T> {
  readonly help: string;
  /** Placeholder of the value; undefined for a switch. */
  readonly value?: string;
  /** One letter that stands for it too. */
  readonly short?: string;
  /** Whether an environment variable may set it. Default true. */
  readonly environment?: boolean;
  /** What it is when nobody sets it, for --help. */
  readonly standard?: string;
  readonly initial: T;
  /** From every text given, in order. `from` is the flag or the environment variable, for messages. */
  readonly read: (texts: readonly string[], from: string) => T;
}

/** By property name: `topK` is `--top-k` and `HALFTONE_TOP_K`. */
export type FlagSet = Readonly<Record<string, Flag<unknown>>>;

/** What the flags of a set hold. */
export type Values<F extends FlagSet> = { readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never };

export function flagName(property: string): string {
  return `--${kebab(property)}`;
}

export function environmentName(property: string): string {
  return `HALFTONE_${kebab(property).toUpperCase().replaceAll("-", "_")}`;
}

function kebab(property: string): string {
  return property.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

type Texts = { readonly help: string } & Partial<
  Pick<Flag<unknown>, "value" | "short" | "environment" | "standard">
>;

/** A flag without a value. */
export function toggle(texts: Texts): Flag<boolean> {
  return { ...texts, initial: false, read: (given, from) => readBoolean(last(given), from) };
}

/** A flag with a text. */
export function text(texts: Texts & { readonly value: string }): Flag<string | undefined> {
  return { ...texts, initial: undefined, read: last };
}

/** A text that has a default. */
export function textOr(standard: string, texts: Texts & { readonly value: string }): Flag<string> {
  return { ...texts, standard, initial: standard, read: last };
}

/** A flag that may be given several times. */
export function texts(texts: Texts & { readonly value: string }): Flag<readonly string[]> {
  return { ...texts, initial: [], read: (given) => given };
}

/** One of a few words. */
export function choice<const T extends string>(
  words: readonly T[],
  standard: T,
  texts: { readonly help: string },
): Flag<T> {
  return {
    ...texts,
    value: words.join("|"),
    standard,
    initial: standard,
    read(given, from) {
      const word = words.find((each) => each === last(given));
      if (word === undefined) throw wrong(from, last(given), `one of ${words.join(", ")}`);
      return word;
    },
  };
}

export interface NumberRange {
  readonly from: number;
  readonly to?: number;
  /** Whole numbers only. Default true. */
  readonly whole?: boolean;
  /** `from` itself is not allowed. */
  readonly above?: boolean;
}

export function number(range: NumberRange, texts: Texts): Flag<number | undefined> {
  const read = (given: readonly string[], from: string) => readNumber(last(given), from, range);
  return { value: "N", ...texts, initial: undefined, read };
}

export function numberOr(standard: number, range: NumberRange, texts: Texts): Flag<number> {
  const read = (given: readonly string[], from: string) => readNumber(last(given), from, range);
  return { value: "N", ...texts, standard: String(standard), initial: standard, read };
}

/** Numbers between commas. */
export function numbers(range: NumberRange, texts: Texts): Flag<readonly number[] | undefined> {
  return {
    value: "N,...",
    ...texts,
    initial: undefined,
    read: (given, from) =>
      last(given)
        .split(",")
        .map((part) => readNumber(part.trim(), from, range)),
  };
}

const byteUnits: Readonly<Record<string, number>> = {
  ...{ "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 },
  ...{ kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 },
};

/** A number of bytes with its unit: `900MB`, `1.5 GiB`. */
export function byteCount(texts: Texts): Flag<number | undefined> {
  return {
    value: "SIZE",
    ...texts,
    initial: undefined,
    read(given, from) {
      const match = /^(\d+\.?\d*|\.\d+)\s*([a-z]*)$/i.exec(last(given).trim());
      const bytes = Math.floor(Number(match?.[1]) * byteUnits[match?.[2].toLowerCase() ?? "?"]);
      if (Number.isSafeInteger(bytes) && bytes > 0) return bytes;
      throw wrong(from, last(given), "a size such as 900MB or 1.5GB");
    },
  };
}

/** `ID=BIAS` pairs between commas, as an object. */
export function biases(texts: Texts): Flag<Readonly<Record<number, number>> | undefined> {
  return {
    value: "ID=BIAS,...",
    ...texts,
    initial: undefined,
    read: (given, from) => Object.fromEntries(given.flatMap((each) => each.split(",")).map(biasReader(from))),
  };
}

function biasReader(from: string) {
  return (pair: string): [number, number] => {
    const match = /^\s*(\d+)\s*[=:]\s*(\S+)\s*$/.exec(pair);
    const bias = match?.[2].toLowerCase() === "-inf" ? -Infinity : Number(match?.[2]);
    if (match === null || Number.isNaN(bias) || bias === Infinity) {
      throw wrong(from, pair, "ID=BIAS, a token id and a number (-inf forbids the token)");
    }
    return [Number(match[1]), bias];
  };
}

function readNumber(text: string, from: string, range: NumberRange): number {
  const { from: least, to: most = Infinity, whole = true, above = false } = range;
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  const fits = above ? value > least : value >= least;
  if (fits && value <= most && (whole ? Number.isSafeInteger(value) : Number.isFinite(value))) return value;
  const kind = whole ? "a whole number" : "a number";
  const lower = above ? `above ${least}` : `from ${least}`;
  const upper = most === Infinity ? (above ? "" : " on") : above ? `, at most ${most}` : ` to ${most}`;
  throw wrong(from, text, `${kind} ${lower}${upper}`);
}

function readBoolean(text: string, from: string): boolean {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  if (/^(0|false|no|off)$/i.test(text)) return false;
  throw wrong(from, text, "1 or 0");
}

function wrong(from: string, text: string, wanted: string): UsageError {
  return new UsageError(`${from} is ${JSON.stringify(text)}; give ${wanted}`);
}

function last(texts: readonly string[]): string {
  return texts[texts.length - 1];
}
