/**
 * Runs the benchmarks that need no model but MiniMind2-Small, one process after the other. With --json: one object, a
 * member for each benchmark.
 *
 * node bench/run.ts [--json]
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** With the flags that keep them short; each alone can measure more. */
const benchmarks: readonly (readonly [name: string, ...flags: string[]])[] = [
  ["linear"],
  ["decode-kernels"],
  ["mapping"],
  ["tcq-encode"],
  ["solver"],
  ["plan", "--only", "speed"],
  ["sensitivity", "--no-noise", "--plans", "10"],
];
const json = process.argv.includes("--json");
const results: Record<string, unknown> = {};
for (const [name, ...flags] of benchmarks) {
  if (!json) console.log(`\n${name}`);
  const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [script, ...flags, ...(json ? ["--json"] : [])], {
    stdio: ["ignore", json ? "pipe" : "inherit", "inherit"],
    maxBuffer: 1 << 26,
  });
  if (status !== 0) {
    process.exitCode = 1;
    console.error(`${name} failed`);
  } else if (json) results[name] = JSON.parse(stdout.toString());
}
if (json) console.log(JSON.stringify(results, null, 2));
