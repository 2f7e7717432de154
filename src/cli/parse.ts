import { UsageError } from "../errors.ts";
import { environmentName, type FlagSet, flagName } from "./flag.ts";
import { nearest } from "./nearest.ts";
import type { Invocation, Verb } from "./verb.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads a verb's arguments; what no flag sets may come from its environment variable.
 * Throws a UsageError that names the flag, what was given and what is allowed.
 */
export function parseArguments(
  verb: Verb,
  args: readonly string[],
  environment: Environment,
): Invocation<FlagSet> {
  const { given, operands } = split(verb, args);
  checkOperands(verb, operands);
  const flags: Record<string, unknown> = {};
  for (const [property, flag] of Object.entries(verb.flags)) {
    const texts = given.get(property);
    const variable = flag.environment === false ? undefined : environmentName(property);
    const inherited = variable === undefined ? undefined : environment[variable];
    if (texts !== undefined) flags[property] = flag.read(texts, flagName(property));
    else if (inherited) flags[property] = flag.read([inherited], variable!);
    else flags[property] = flag.initial;
  }
  return { operands, flags };
}

function split(verb: Verb, args: readonly string[]) {
  const given = new Map<string, string[]>();
  const operands: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg === "--") {
      operands.push(...args.slice(i + 1));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      operands.push(arg);
      continue;
    }
    const equals = arg.startsWith("--") ? arg.indexOf("=") : -1;
    const name = equals < 0 ? arg : arg.slice(0, equals);
    const property = propertyOf(verb, name);
    let text = equals < 0 ? undefined : arg.slice(equals + 1);
    if (verb.flags[property].value === undefined) text ??= "1";
    else if (text === undefined) {
      text = args[++i];
      if (text === undefined || (text.startsWith("--") && isFlag(verb, text))) {
        throw new UsageError(`${name} needs a value: ${name} ${verb.flags[property].value}`);
      }
    }
    given.set(property, [...(given.get(property) ?? []), text]);
  }
  return { given, operands };
}

function propertyOf(verb: Verb, name: string): string {
  const properties = Object.keys(verb.flags);
  const property = properties.find(
    (each) => flagName(each) === name || (verb.flags[each].short && `-${verb.flags[each].short}` === name),
  );
  if (property !== undefined) return property;
  const close = nearest(name, properties.map(flagName));
  const hint = close === undefined ? `see halftone ${verb.name} --help` : `did you mean ${close}?`;
  throw new UsageError(`${verb.name} has no flag ${name}; ${hint}`);
}

function isFlag(verb: Verb, text: string): boolean {
  const name = text.split("=")[0];
  return Object.keys(verb.flags).some((property) => flagName(property) === name);
}

function checkOperands(verb: Verb, operands: readonly string[]): void {
  const required = verb.operands.filter((operand) => !operand.startsWith("["));
  const usage = ["halftone", verb.name, ...verb.operands].join(" ");
  const missing = required.find((_, i) => !operands[i]);
  if (missing !== undefined) throw new UsageError(`${verb.name} needs ${missing}; usage: ${usage}`);
  if (operands.length > verb.operands.length) {
    const extra = JSON.stringify(operands[verb.operands.length]);
    throw new UsageError(`${verb.name} does not take ${extra} (quote texts with blanks); usage: ${usage}`);
  }
}
