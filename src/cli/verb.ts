import type { FlagSet, Values } from "./flag.ts";

/** A verb called: what stood on the command line, checked. */
export interface Invocation<F extends FlagSet> {
  readonly operands: readonly string[];
  readonly flags: Values<F>;
}

export interface Verb<F extends FlagSet = FlagSet> {
  readonly name: string;
  readonly summary: string;
  /** In order; the ones in brackets may be left out: `MODEL`, `[PROMPT]`. */
  readonly operands: readonly string[];
  readonly flags: F;
  readonly example: string;
  /** Imports the code: --help must not wait for the engine. */
  readonly load: () => Promise<(invocation: Invocation<F>) => Promise<void>>;
}

/** Keeps the flags' types together with the code that reads them. */
export function defineVerb<F extends FlagSet>(verb: Verb<F>): Verb {
  return verb as unknown as Verb;
}
