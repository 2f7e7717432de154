import { spawn } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import type { Operation } from "../../src/backends/operation.ts";
import { slotPart } from "../../src/backends/slot.ts";
import { spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import { HalftoneError } from "../../src/errors.ts";
import { openWasm } from "../../src/ops/wasm.ts";

const opened: Backend[] = [];
async function open(threads: number) {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  opened.push(backend);
  return backend;
}
afterEach(() => {
  for (const backend of opened.splice(0)) backend.dispose();
});

/** Adds ones to zeros, `operations` times a run; returns the value after `runs`. */
async function count(backend: Backend, operations: number, runs: number, size = 200): Promise<Float32Array> {
  const [input, add] = [backend.allocate(size * 4), backend.allocate(size * 4)];
  backend.upload(add, new Float32Array(size).fill(1));
  const one: Operation = { op: "add", input, add, rows: 1, size };
  const program = backend.record(Array.from({ length: operations }, () => one));
  for (let i = 0; i < runs; i++) await backend.run(program);
  program.free();
  return backend.readFloats(input, size);
}

describe("threads", () => {
  it("take turns on programs that are freed and replaced at once", async () => {
    const backend = await open(2);
    for (let i = 1; i <= 1000; i++) {
      const operations = 1 + (i % 5);
      const size = 1 + (i % 300);
      expect(await count(backend, operations, 1, size)).toEqual(new Float32Array(size).fill(operations));
      await backend.run(backend.record([]));
    }
  });

  it.each([
    [2, 10_000],
    [3, 300],
  ])("%i threads finish %i small programs", async (threads, runs) => {
    const backend = await open(threads);
    expect(backend.threads).toBe(threads);
    expect(await count(backend, 3, runs)).toEqual(new Float32Array(200).fill(3 * runs));
  });

  it("wake up after they slept", async () => {
    const backend = await open(2);
    for (let i = 0; i < 3; i++) {
      expect(await count(backend, 2, 10)).toEqual(new Float32Array(200).fill(20));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  it("of several backends do not disturb each other", async () => {
    const backends = await Promise.all([open(2), open(2), open(1)]);
    const counts = await Promise.all(backends.map((backend, i) => count(backend, 2, 300 + i)));
    counts.forEach((values, i) => {
      expect(values).toEqual(new Float32Array(200).fill(2 * (300 + i)));
    });
    opened[0].dispose();
    expect(await count(backends[1], 1, 100)).toEqual(new Float32Array(200).fill(100));
  });

  it("do not keep the process alive", async () => {
    const url = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);
    const script = `
      import { openWasm } from ${url("ops/wasm.ts")};
      import { spawnNodeWorker } from ${url("backends/wasm/workers.node.ts")};
      const backend = await openWasm({ threads: 2, spawn: spawnNodeWorker });
      await backend.run(backend.record([]));
      console.log(backend.threads);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0);
    expect(output).toBe("2\n");
  });

  it("are one where nothing can spawn them", async () => {
    const backend = await openWasm({ threads: 4 });
    opened.push(backend);
    expect(backend.threads).toBe(1);
  });
});

describe("memory and errors", () => {
  it.each([
    [1000, 256],
    [Number.NaN, 1],
  ])("asked to be %d are %i", async (threads, count) => {
    const backend = await openWasm({ threads, spawn: async () => ({ terminate: () => undefined }) });
    opened.push(backend);
    expect(backend.threads).toBe(count);
  });

  it("says that memory is full, and how to need less", async () => {
    const backend = await open(1);
    expect(() => backend.reserve(5 * 2 ** 30)).toThrow(HalftoneError);
    expect(() => backend.reserve(5 * 2 ** 30)).toThrow("out of memory: 5120 MB more do not fit");
    expect(await count(backend, 1, 1)).toEqual(new Float32Array(200).fill(1));
  });

  it("refuses to run once disposed", async () => {
    const backend = await open(2);
    const program = backend.record([]);
    backend.dispose();
    backend.dispose();
    await expect(backend.run(program)).rejects.toThrow("this backend was disposed");
  });

  it("fills new memory with zeros and writes where it is told", async () => {
    const backend = await open(1);
    const first = backend.allocate(64);
    backend.upload(first, new Float32Array(16).fill(1));
    backend.free(first);
    const slot = backend.allocate(64);
    expect(slot.place).toBe(first.place);
    backend.upload(slot, Float32Array.of(5), 8);
    expect([...(await backend.readFloats(slotPart(slot, 4, 12), 3))]).toEqual([0, 5, 0]);
    expect(() => slotPart(slot, 60, 8)).toThrow(RangeError);
  });
});
