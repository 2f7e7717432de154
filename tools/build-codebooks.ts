/**
 * Computes the codebooks of NUQ, uniform quantization and VQ and writes src/quantizers/codebooks/.
 * The same at every run (half a minute): `node tools/build-codebooks.ts && npm run format`.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lloydMaxLevels, uniformStep } from "./lloydMax.ts";
import { gaussianCover, planarKMeans } from "./planarKMeans.ts";

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

/** Fixed-point unit of the stored coordinates: an error of 5e-9, a reach of 8 standard deviations. */
const vqUnit = 2 ** -12;

function writeVq(): void {
  const lines = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((codeBits) => {
    const large = codeBits > 8;
    const samples = gaussianCover(large ? 2 ** 20 : 2 ** 17);
    const points = planarKMeans(2 ** codeBits, samples, large ? 60 : 300);
    const bytes = Buffer.from(Int16Array.from(points, (v) => Math.round(v / vqUnit)).buffer);
    return `  ${codeBits}: "${bytes.toString("base64")}",`;
  });
  write("vq", "Codebooks of 2D vector quantization: centroids of pairs of unit Gaussians.", [
    "",
    "/** The value of 1 in the stored coordinates. */",
    `export const vqUnit = ${vqUnit};`,
    "",
    "/** By bits of a code, twice the bits of a weight: x0, y0, x1, y1, ... as little-endian 16-bit integers, base64. */",
    "export const vqPoints: Readonly<Record<number, string>> = {",
    ...lines,
    "};",
  ]);
}

writeScalar();
writeVq();
