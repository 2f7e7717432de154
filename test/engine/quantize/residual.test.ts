import { join } from "node:path";
import { expect, it } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { openFile } from "../../../src/checkpoint/node.ts";
import { readHeader } from "../../../src/checkpoint/safetensors/header.ts";
import { rowLayoutOf } from "../../../src/compensation/groups.ts";
import { createJobRunner } from "../../../src/engine/quantize/job.ts";
import type { TensorPlan } from "../../../src/engine/quantize/plan.ts";
import type { Pool } from "../../../src/engine/quantize/pool.node.ts";
import { writeResidual } from "../../../src/engine/quantize/residual.node.ts";
import type { DecoderSpec } from "../../../src/models/decoder.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";
import { encodeResidual } from "../../../src/quantizers/residual.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";

it("lays parts of one weight side by side, however many jobs their rows take", async () => {
  // A job takes 64 rows of so many columns.
  const [columns, gate, up] = [2050, 144, 70];
  const linear = (weight: string, rows: number, firstRow = 0) => ({ weight, rows, columns, firstRow });
  const members = [linear("w", gate), linear("w", up, gate)];
  const other = linear("kept as it is", 1);
  const decoder = {
    layers: [
      {
        attention: { q: other, k: other, v: other, o: other },
        mlp: { gate: members[0], up: members[1], down: other },
      },
    ],
  } as unknown as DecoderSpec;
  const weights = fillGaussian(new Float32Array((gate + up) * columns), 3);
  const rowsOf = (start: number, end: number) => weights.slice(start * columns, end * columns);
  const tensors = new Map([["w", { readRows: async (start: number, end: number) => rowsOf(start, end) }]]);
  const original = { tensors } as unknown as Pick<Checkpoint, "tensors">;
  const stored = { scheme: "uniform-3", rotation: null };
  const run = createJobRunner();
  const rounded = run({ kind: "round", weights, rows: gate + up, columns, stored });
  const decoded = run({ kind: "decode", ...rounded, columns, stored });
  const folder = temporaryFolder();
  await writeResidual({
    ...{ decoder, original, folder, bits: 4, quantized: async () => rounded },
    plan: new Map([["w", { ...stored, shape: [gate + up, columns] }]]) as unknown as TensorPlan,
    pool: { threads: 2, run: async (job) => run(job), close: async () => {} } satisfies Pool,
  });

  const file = await openFile(join(folder, "residual.safetensors"));
  const { entries } = await readHeader(file);
  const [codes, scales] = await Promise.all(
    ["residual", "residual_scales"].map((kind) => {
      const { offset, byteLength } = entries.find(({ name }) => name.endsWith(`.${kind}`))!;
      return file.read(offset, byteLength);
    }),
  );
  await file.close();
  const { offsets, stride } = rowLayoutOf({ members }, 4);
  expect(codes.length).toBe(columns * stride);
  for (const [i, { rows, firstRow }] of members.entries()) {
    const from = firstRow * columns;
    const residual = rowsOf(firstRow, firstRow + rows).map((value, at) => value - decoded[from + at]);
    const wanted = encodeResidual(residual, rows, columns, 4);
    const rowBytes = wanted.codes.length / columns;
    const part = Uint8Array.from(wanted.codes, (_, at) => {
      return codes[Math.floor(at / rowBytes) * stride + offsets[i] + (at % rowBytes)];
    });
    expect(Buffer.from(part).equals(wanted.codes)).toBe(true);
    const stored = new Float32Array(new Uint8Array(scales).buffer, 4 * firstRow, rows);
    expect(stored).toEqual(wanted.scales);
  }
});
