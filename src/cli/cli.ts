import { readFile } from "node:fs/promises";
import { HalftoneError, UsageError } from "../errors.ts";
import { overview, verbHelp } from "./help.ts";
import { nearest } from "./nearest.ts";
import { print } from "./output.ts";
import { parseArguments } from "./parse.ts";
import type { Verb } from "./verb.ts";
import { verbs } from "./verbs.ts";

/** What a shell reports of a program that Ctrl-C ended: 128 + SIGINT. */
const INTERRUPTED = 130;

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs the command line; returns the exit code. */
export async function cli(args: readonly string[], environment: Environment): Promise<number> {
  try {
    await dispatch(args, environment);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return report(error, args, environment);
  }
}

/** Says on stderr what ended the program; returns the exit code. */
export function report(error: unknown, args: readonly string[], environment: Environment): number {
  if (error instanceof Error && error.name === "AbortError") return INTERRUPTED;
  const debug = args.includes("--debug") || /^(1|true|yes|on)$/i.test(environment.HALFTONE_DEBUG ?? "");
  process.stderr.write(`${describe(error, debug)}\n`);
  return 1;
}

async function dispatch(args: readonly string[], environment: Environment): Promise<void> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || isHelp(name)) {
    const verb = name === "help" ? rest[0] : undefined;
    await print(verb === undefined ? overview(verbs, await version()) : verbHelp(verbNamed(verb)));
    return;
  }
  if (name === "--version" || name === "-v") return print(`${await version()}\n`);
  const verb = verbNamed(name);
  const end = rest.indexOf("--");
  if ((end < 0 ? rest : rest.slice(0, end)).some(isHelp)) return print(verbHelp(verb));
  const invocation = parseArguments(verb, rest, environment);
  const action = await verb.load();
  await action(invocation);
}

function verbNamed(name: string): Verb {
  const verb = verbs.find((each) => each.name === name);
  if (verb !== undefined) return verb;
  const close = nearest(
    name,
    verbs.map((each) => each.name),
  );
  const hint = close === undefined ? "see halftone --help" : `did you mean ${close}?`;
  throw new UsageError(`there is no verb ${JSON.stringify(name)}; ${hint}`);
}

function isHelp(arg: string): boolean {
  return arg === "--help" || arg === "-h";
}

async function version(): Promise<string> {
  const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  return JSON.parse(text).version;
}

/** One line for the user; the stack only when asked for. */
function describe(error: unknown, debug: boolean): string {
  const stack = debug && error instanceof Error ? `\n${error.stack}` : "";
  const message = (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, " ");
  if (error instanceof HalftoneError) return `halftone: ${message}${stack}`;
  const advice = debug ? "" : "; --debug shows where, please report it";
  return `halftone: unexpected error, a defect of Halftone: ${message}${advice}${stack}`;
}
