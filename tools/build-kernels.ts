/**
 * Compiles the AssemblyScript kernels, each once for plain SIMD and once for relaxed SIMD,
 * into `*.generated.ts` modules that hold the binaries as base64 strings: no bundler, worker
 * or browser then has to find a file. Skips entries whose sources are older than the output.
 */
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

interface Entry {
  /** Path of the entry source, without `.as.ts`. */
  readonly path: string;
  /** Threads share one imported memory, or each instance has its own. */
  readonly sharedMemory: boolean;
}

const entries: Entry[] = [
  { path: "src/backends/wasm/kernels", sharedMemory: true },
  { path: "src/quantizers/tcq/viterbi", sharedMemory: false },
];

const root = fileURLToPath(new URL("..", import.meta.url));
const sharedFlags = ["--importMemory", "--sharedMemory", "--initialMemory", "16", "--maximumMemory", "65536"];
const baseFlags = ["-O3", "--noAssert", "--runtime", "stub", "--enable", "simd", "--memoryBase", "8192"];

async function compile(entry: Entry, relaxed: boolean): Promise<Uint8Array> {
  const output = "kernel.wasm";
  let binary: Uint8Array | undefined;
  const flags = [...baseFlags, "-o", output];
  if (relaxed) flags.push("--enable", "relaxed-simd");
  if (entry.sharedMemory) flags.push("--enable", "threads", ...sharedFlags);
  const { error, stderr } = await asc.main([`${entry.path}.as.ts`, "--baseDir", root, ...flags], {
    readFile: (name, base) => {
      try {
        return readFileSync(`${base}/${name}`, "utf8");
      } catch {
        return null;
      }
    },
    writeFile: (name, contents) => {
      if (name === output) binary = contents as Uint8Array;
    },
  });
  if (error || !binary) throw new Error(`${entry.path}: ${error?.message ?? "no output"}\n${stderr}`);
  return binary;
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

process.chdir(root);
const sources = [...globSync("src/**/*.as.ts"), "src/backends/wasm/opcodes.ts", "tools/build-kernels.ts"];
const newestSource = Math.max(...sources.map(modified));
for (const entry of entries) {
  const target = `${entry.path}.generated.ts`;
  if (modified(target) > newestSource || modified(`${entry.path}.as.ts`) === 0) continue;
  const [plain, relaxed] = [await compile(entry, false), await compile(entry, true)];
  const text = (name: string, binary: Uint8Array) =>
    `export const ${name} =\n  "${Buffer.from(binary).toString("base64")}";\n`;
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text("plainSimd", plain) + text("relaxedSimd", relaxed));
  console.error(`${target}: ${plain.length} and ${relaxed.length} bytes`);
}
