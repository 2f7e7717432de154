import type { Plan } from "../budget/plan.ts";
import type { Problem } from "../budget/problem.ts";
import { solve } from "../budget/solve.ts";
import { UsageError } from "../errors.ts";
import { readJsonFile, required, writeJsonFile } from "./files.ts";
import type { planFlags } from "./flags.ts";
import { formatBytes, significant } from "./format.ts";
import { print, printJson, table } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone plan --problem`: a problem that somebody else has put together. */
export async function planProblem({ flags }: Invocation<typeof planFlags>): Promise<void> {
  const path = required(flags.problem, "MODEL, or --problem FILE,");
  const problem = (await readJsonFile(path, "--problem", "docs/planning.md")) as Problem;
  const solved = await solve(problem).catch((error: unknown) => {
    if (error instanceof UsageError) throw new UsageError(`${path}: ${error.message}`, { cause: error });
    throw error;
  });
  if (flags.output !== undefined) await writeJsonFile(flags.output, solved, "-o");
  if (flags.json) return printJson(solved);
  const summary = summaryOf(solved);
  if (flags.output !== undefined) {
    return print(`${flags.output}: ${solved.choice.length} choices\n${summary}`);
  }
  const bits = new Map(problem.options.map((option) => [option.name, significant(option.bits)]));
  const rows = solved.choice.map(({ layers, option }) => [layers.join(" + "), option, bits.get(option)!]);
  await print(`${summary}\n${table(["layers", "option", "bits"], rows, ["bits"])}`);
}

function summaryOf({ bits, bytes, seconds, objective, bound, gap, ...rest }: Plan): string {
  const time = seconds === undefined ? "" : `, ${(1000 * seconds).toPrecision(4)} ms`;
  const { idealObjective, distortionGap, allocationGap } = rest;
  return (
    `${significant(bits)} bits per weight, ${formatBytes(bytes)}${time}\n` +
    `predicted loss ${objective.toPrecision(5)}, no plan is below ${bound.toPrecision(5)} (gap ${(100 * gap).toFixed(3)}%)\n` +
    `ideal quantizers ${idealObjective.toPrecision(4)}, distortion ${distortionGap.toPrecision(3)} more, allocation ${allocationGap.toPrecision(3)} more\n`
  );
}
