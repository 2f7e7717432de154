/**
 * Computes the codebooks of NUQ, uniform quantization and VQ and writes src/quantizers/codebooks/.
 * The same bytes at every run: `node tools/build-codebooks.ts`.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lloydMaxLevels, uniformStep } from "./lloydMax.ts";

const folder = fileURLToPath(new URL("../src/quantizers/codebooks/", import.meta.url));
const scalarBits = [2, 3, 4, 5, 6, 7, 8];

function write(name: string, description: string, lines: readonly string[]): void {
  const header = [
    "/**",
    ` * ${description}`,
    " * Written by tools/build-codebooks.ts.",
    " *",
    " * @module",
    " */",
  ];
  writeFileSync(`${folder}${name}.ts`, `${[...header, ...lines].join("\n")}\n`);
}

function writeScalar(): void {
  write("scalar", "Codebooks of the scalar quantizers, best for the unit Gaussian.", [
    "",
    "/** By bits: the positive half of the 2^bits Lloyd-Max levels, ascending. */",
    "export const positiveLevels: Readonly<Record<number, readonly number[]>> = {",
    ...scalarBits.map(
      (bits) =>
        `  ${bits}: [${lloydMaxLevels(bits)
          .map((level) => level.toPrecision(8))
          .join(", ")}],`,
    ),
    "};",
    "",
    "/** By bits: the step of the best symmetric uniform quantizer of 2^bits levels. */",
    "export const uniformSteps: Readonly<Record<number, number>> = {",
    ...scalarBits.map((bits) => `  ${bits}: ${uniformStep(bits).toFixed(6)},`),
    "};",
  ]);
}

writeScalar();
