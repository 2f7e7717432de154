import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { rowFetcher } from "../../src/backends/wasm/rowFetcher.ts";
import { nodeRowFetcher, spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import { CheckpointError, UnsupportedError } from "../../src/errors.ts";
import {
  compensationCase,
  compensationCases,
  randomResidual,
  tolerance,
} from "../../src/ops/compensate/cases.ts";
import { selectChannels } from "../../src/ops/compensate/reference.ts";
import { gaussian } from "../../src/ops/operationCase.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { checkOperation } from "./checkOperation.ts";
import { runCase } from "./runCase.ts";

for (const bits of [2, 4, 8, 16] as const) {
  checkOperation(`linear compensated from ${bits} bits`, {
    cases: compensationCases("nuq-3", bits),
    tolerance,
  });
}

describe("rows that stay in a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "halftone-rows-"));
  const path = join(folder, "rows");
  afterAll(() => rmSync(folder, { recursive: true }));

  const shape = { tokens: 21, columns: 576, rows: [2000, 65], channels: 97 };
  const residual = randomResidual(shape.rows, shape.columns, 4, 80);
  const prefix = 1000;
  const rule = { by: "magnitude" } as const;
  const inMemory = compensationCase("nuq-4", 4, shape, rule, residual);
  const open = (rows = shape.rows) => {
    const stored = rows === shape.rows ? residual : randomResidual(rows, shape.columns, 4, 80);
    writeFileSync(path, new Uint8Array([...new Uint8Array(prefix), ...stored.bytes]));
    const descriptor = openSync(path, "r");
    const file = { name: path, descriptor, position: prefix };
    return {
      descriptor,
      inFile: compensationCase("nuq-4", 4, { ...shape, rows }, rule, { ...stored, file }),
    };
  };

  it.each([1, 2, 3])("give the same bits on %i threads, a step or a token at a time", async (threads) => {
    const backend = await openWasm({ threads, spawn: spawnNodeWorker, fetchRows: nodeRowFetcher });
    const { descriptor, inFile } = open();
    try {
      const wanted = await runCase(backend, inMemory);
      expect(await runCase(backend, inFile)).toEqual(wanted);
      expect(await runCase(backend, inFile, true)).toEqual(wanted);
    } finally {
      closeSync(descriptor);
      backend.dispose();
    }
  });

  it("read each row once for all tokens of a step, near ones together", async () => {
    const reads: number[] = [];
    const counted = (file: number, target: Uint8Array, offset: number, length: number, position: number) => {
      reads.push(length);
      return readSync(file, target, offset, length, position);
    };
    const fetchRows = (memory: WebAssembly.Memory) => rowFetcher(counted, memory);
    const backend = await openWasm({ fetchRows });
    const { descriptor, inFile } = open([65]);
    try {
      await runCase(backend, inFile);
      const all = reads.reduce((sum, length) => sum + length, 0);
      expect(all).toBeLessThanOrEqual(shape.columns * 64);
      // Chosen by one token in six, nearly all rows are neighbours.
      expect(reads.length).toBeLessThan(shape.columns / 20);
    } finally {
      closeSync(descriptor);
      backend.dispose();
    }
  });

  it("may come in small pieces, from beyond 4 GB", async () => {
    const beyond = 2 ** 33;
    const small = (file: number, target: Uint8Array, offset: number, length: number, position: number) =>
      readSync(file, target, offset, Math.min(length, 999), position - beyond);
    const backend = await openWasm({ fetchRows: (memory) => rowFetcher(small, memory) });
    const { descriptor } = open();
    const file = { name: path, descriptor, position: beyond + prefix };
    const far = compensationCase("nuq-4", 4, shape, rule, { ...residual, file });
    expect(await runCase(backend, far)).toEqual(await runCase(backend, inMemory));
    closeSync(descriptor);
    backend.dispose();
  });

  // Reading a process's own memory at an address where none is fails as a broken disk does.
  it.runIf(existsSync("/proc/self/mem")).each([1, 2])(
    "on %i threads: a failing device is an error",
    async (threads) => {
      const backend = await openWasm({ threads, spawn: spawnNodeWorker, fetchRows: nodeRowFetcher });
      const descriptor = openSync("/proc/self/mem", "r");
      const file = { name: path, descriptor, position: 0 };
      const run = runCase(backend, compensationCase("nuq-4", 4, shape, rule, { ...residual, file }));
      await expect(run).rejects.toThrow(CheckpointError);
      await expect(run).rejects.toThrow(/rows: cannot be read \(error 5\).*--no-compensation/);
      closeSync(descriptor);
      backend.dispose();
    },
  );

  it.each([1, 2])(
    "on %i threads: a file cut short or closed is an error, never a wrong answer",
    async (threads) => {
      const backend = await openWasm({ threads, spawn: spawnNodeWorker, fetchRows: nodeRowFetcher });
      const { descriptor, inFile } = open();
      try {
        truncateSync(path, prefix + residual.bytes.length / 2);
        const short = runCase(backend, inFile);
        await expect(short).rejects.toThrow(CheckpointError);
        await expect(short).rejects.toThrow(/rows: ends earlier.*--no-compensation/);
      } finally {
        closeSync(descriptor);
      }
      await expect(runCase(backend, inFile)).rejects.toThrow(/cannot be read/);
      // The next step without compensation is not concerned.
      expect(await runCase(backend, inMemory)).toBeDefined();
      backend.dispose();
    },
  );

  it("are refused by a host without files", async () => {
    const backend = await openWasm();
    const { descriptor, inFile } = open();
    await expect(runCase(backend, inFile)).rejects.toThrow(UnsupportedError);
    closeSync(descriptor);
    backend.dispose();
  });
});

describe("selection", () => {
  it("takes the first of equal channels", () => {
    const x = Float32Array.from([1, -2, 2, 0, -2, 5]);
    expect([...selectChannels(x, 3, { by: "magnitude" })]).toEqual([1, 2, 5]);
    expect([...selectChannels(new Float32Array(5), 2, { by: "magnitude" })]).toEqual([0, 1]);
  });

  it("by buckets takes from every chunk its share, and nearly the largest", () => {
    const x = gaussian(2500, 9);
    const chosen = selectChannels(x, 250, { by: "buckets", largest: 3.6, usual: 1.75 });
    expect(chosen.length).toBe(250);
    const inFirst = chosen.filter((channel) => channel < 1024).length;
    expect(inFirst).toBe(Math.floor((250 * 1024) / 2500));
    const exact = new Set(selectChannels(x, 250, { by: "magnitude" }));
    expect(chosen.filter((channel) => exact.has(channel)).length).toBeGreaterThan(0.85 * 250);
  });
});
