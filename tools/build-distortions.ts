/**
 * Measures every quantizer on Gaussian weights and writes src/quantizers/distortions.ts, what the planner reckons with.
 * Run it after a change of a quantizer.
 *
 * node tools/build-distortions.ts [--sequences 1024]
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pipeline } from "../src/engine/quantize/pipeline.ts";
import { createPool } from "../src/engine/quantize/pool.node.ts";
import { allSchemes } from "../src/quantizers/scheme.ts";

const { values: flags } = parseArgs({ options: { sequences: { type: "string", default: "1024" } } });
const sequences = Number(flags.sequences);
const pool = createPool(availableParallelism());
const lines: string[] = [];
const schemes = allSchemes().filter(({ family }) => family !== "float");
const start = ({ name: scheme }: { name: string }) =>
  pool.run({ kind: "distortion", scheme, sequences, seed: 0 });
for await (const [{ name }, { distortion }] of pipeline(schemes, 2 * pool.threads, start)) {
  lines.push(`  "${name}": ${Number(distortion.toPrecision(4))},`);
  console.log(lines.at(-1));
}
await pool.close();
const text = `/**
 * Mean squared error of each scheme on Gaussian weights of variance 1, row scales included: measured once, by
 * tools/build-distortions.ts.
 *
 * @module
 */

/** By scheme, ${sequences} sequences of 256 weights. */
export const distortions: Readonly<Record<string, number>> = {
${lines.join("\n")}
};
`;
writeFileSync(fileURLToPath(new URL("../src/quantizers/distortions.ts", import.meta.url)), text);
