import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { rowFetcher } from "../../src/backends/wasm/rowFetcher.ts";
import { nodeRowFetcher } from "../../src/backends/wasm/workers.node.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { parseShares, uniformShares } from "../../src/compensation/settings.ts";
import { MOST_CHANNELS } from "../../src/compensation/tuner.ts";
import { forward } from "../../src/engine/forward.ts";
import { type CompensationOptions, Model } from "../../src/engine/model.ts";
import { profileInputs } from "../../src/engine/profile.ts";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import { tuneCompensation } from "../../src/engine/tuneCompensation.ts";
import { CheckpointError, UsageError } from "../../src/errors.ts";
import { load } from "../../src/node.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import type { ResidualBits } from "../../src/quantizers/residual.ts";
import { temporaryFolder } from "../checkpoint/temporary.ts";
import { openFixture } from "../models/fixture.ts";
import { relativeError } from "../relativeError.ts";

const ids = Array.from({ length: 9 }, (_, i) => (i * 31 + 5) % 96);
const input = { ids, positions: ids.map((_, i) => i) };

const made = mkdtempSync(join(tmpdir(), "halftone-residuals-"));
afterAll(() => rmSync(made, { recursive: true, force: true }));

/** A folder of its own with a quantized fixture; each is quantized once. */
async function quantized(residual: ResidualBits, fixture = "llama3-v5", scheme = "nuq-3"): Promise<string> {
  const model = join(made, `${fixture} ${scheme} ${residual}`);
  if (!existsSync(model)) {
    const checkpoint = await openFixture(fixture);
    await quantizeCheckpoint(checkpoint, model, { scheme, embeddingScheme: "f32", residual, threads: 1 });
  }
  const folder = temporaryFolder();
  cpSync(model, folder, { recursive: true });
  return folder;
}

async function logitsOf(
  path: string,
  compensation: false | CompensationOptions,
  options: {
    threads?: number;
    backend?: "wasm" | "reference";
    use?: (model: Model) => Promise<unknown>;
  } = {},
): Promise<Float32Array> {
  const { threads = 1, backend, use } = options;
  const model = await load(path, { compensation, threads, backend, activations: "float", floats: "f32" });
  try {
    await use?.(model);
    return await model.runner.step(input, "all");
  } finally {
    model.dispose();
  }
}

const all = { channels: uniformShares(1024) };
const few = { channels: uniformShares(128) };

describe("a model and its residual", () => {
  it.each([
    ["llama3-v5", "nuq-3"],
    ["llama3-v5", "tcq-s-2"],
    ["phi3-partial", "nuq-2"],
    ["qwen2-bf16", "uniform-3"],
  ])("%s at %s: with every channel it is the float model again", async (fixture, scheme) => {
    const folder = await quantized(16, fixture, scheme);
    const float = await logitsOf(`test/fixtures/models/${fixture}`, false);
    const plain = relativeError(await logitsOf(folder, false), float);
    expect(plain).toBeGreaterThan(0.02);
    expect(relativeError(await logitsOf(folder, all), float)).toBeLessThan(Math.min(2e-3, plain / 10));
    const most = { channels: uniformShares(768) };
    expect(relativeError(await logitsOf(folder, most), float)).toBeLessThan(plain);
    const bytes = await quantized(8, fixture, scheme);
    expect(relativeError(await logitsOf(bytes, all), float)).toBeLessThan(plain / 10);
  });

  it("gives the same bits on any number of threads, from memory and from the file, near the reference", async () => {
    const folder = await quantized(4);
    const one = await logitsOf(folder, few);
    expect(await logitsOf(folder, few, { threads: 3 })).toEqual(one);
    expect(await logitsOf(folder, { ...few, store: "file" }, { threads: 2 })).toEqual(one);
    expect(await logitsOf(folder, { ...few, store: "file" })).toEqual(one);
    const read = { ...few, store: "file", readers: 1 } as const;
    expect(await logitsOf(folder, read, { threads: 2 })).toEqual(one);
    expect(relativeError(await logitsOf(folder, few, { backend: "reference" }), one)).toBeLessThan(1e-4);
  });

  it("is tuned where rows stay in the file, and runs as it was tuned", async () => {
    const folder = await quantized(4);
    const model = await load(folder, { compensation: { ...few, store: "file" }, threads: 2 });
    const { channels, readers } = await tuneCompensation(model, { slowdown: 1e3 });
    model.dispose();
    expect(channels).toEqual(uniformShares(MOST_CHANNELS));
    expect([1, 2]).toContain(readers);
    const checkpoint = await openCheckpoint(folder);
    const backend = await openWasm({ fetchRows: nodeRowFetcher });
    const seen: string[] = [];
    const compensation = {
      store: "file",
      tuned: (layers: string) => {
        seen.push(layers);
        return { channels, readers };
      },
    } as const;
    const tuned = await Model.load(checkpoint, backend, { compensation });
    expect(tuned.runner.reading.compensation).toEqual({ channels, select: "exact", readers });
    tuned.dispose();
    await checkpoint.close();
    expect(seen).toEqual([expect.stringMatching(/^4 bits in the file, 8 inputs: qkv /)]);
  });

  it("gives each kind of layer its own share of its input channels", async () => {
    const model = await load(await quantized(4), { threads: 1 });
    const { forwardPlan, reading } = model.runner;
    const compensation = { select: "exact", channels: { qkv: 100, o: 0, gateUp: 1024, down: 300 } } as const;
    const operations = forward(forwardPlan, { ...reading, compensation }, 1, "none", undefined);
    const counts = operations.flatMap((each) => (each.op === "linear" ? [each.compensation?.channels] : []));
    const layer = [3, undefined, 32, 14];
    expect(counts).toEqual([...layer, ...layer]);
    model.dispose();
  });

  it("is compensated where a step's reading says so, token by token as in one step", async () => {
    const folder = await quantized(4);
    const without = await logitsOf(folder, false);
    const model = await load(folder, { compensation: few, threads: 1, activations: "float", floats: "f32" });
    const { runner } = model;
    const { compensation: _, ...plain } = runner.reading;
    expect(await runner.step(input, "all", plain)).toEqual(without);
    const whole = await runner.step(input, "all");
    expect(whole).not.toEqual(without);
    const size = model.spec.vocabularySize;
    for (const [i, id] of ids.entries()) {
      const row = await runner.step({ ids: [id], positions: [i] }, "last");
      expect(row).toEqual(whole.subarray(i * size, (i + 1) * size));
    }
    model.dispose();
  });

  it("learns the same of its inputs in steps of any size", async () => {
    const folder = await quantized(4);
    const learnt = [];
    for (const chunk of [2, 64]) {
      const model = await load(folder, { threads: 1, chunk });
      await profileInputs(model, ids);
      const { residuals } = model.weights;
      learnt.push(residuals!.groups.map(({ group }) => residuals!.profileOf(group)));
      model.dispose();
    }
    expect(learnt[0]).toEqual(learnt[1]);
    expect(learnt[0]).not.toContain(undefined);
  });

  it("chooses statically and by buckets after it has seen tokens, not before", async () => {
    const folder = await quantized(4);
    const exact = await logitsOf(folder, few);
    for (const select of ["static", "bucket"] as const) {
      await expect(logitsOf(folder, { ...few, select })).rejects.toThrow(UsageError);
      const use = (model: Model) => profileInputs(model, ids);
      const logits = await logitsOf(folder, { ...few, select }, { use });
      expect(logits).not.toEqual(await logitsOf(folder, false));
      expect(logits.every(Number.isFinite)).toBe(true);
      // Every channel is every channel, however chosen; other shares are other programs.
      const whole = await logitsOf(folder, { ...all, select }, { use });
      expect(relativeError(whole, await logitsOf(folder, all))).toBeLessThan(1e-6);
    }
    expect(await logitsOf(folder, { ...few, select: "random" })).not.toEqual(exact);
  });
});

describe("a load that fails", () => {
  const descriptors = "/proc/self/fd";
  const open = () => readdirSync(descriptors).length;

  it.skipIf(!existsSync(descriptors))("leaves no file open", async () => {
    const folder = await quantized(4);
    const before = open();
    const tooLong = load(folder, { threads: 1, compensation: { store: "file" }, context: 1e9 });
    await expect(tooLong).rejects.toThrow(/context/);
    await expect(load(folder, { threads: 1, policy: join(folder, "none") })).rejects.toThrow(/--policy/);
    expect(open()).toBe(before);
  });
});

describe("a residual file that is damaged", () => {
  const damage: [string, (path: string) => unknown, RegExp][] = [
    [
      "missing",
      (path) => rmSync(path),
      /names residual.safetensors, which is not beside it.*--no-compensation/,
    ],
    ["cut short", (path) => truncateSync(path, 5000), /residual.safetensors/],
    ["empty", (path) => truncateSync(path, 0), /residual.safetensors/],
    [
      "of another model",
      (path) => {
        const bytes = readFileSync(path);
        const text = bytes.toString("latin1").replaceAll("q_proj+k_proj", "q_proj+x_proj");
        writeFileSync(path, Buffer.from(text, "latin1"));
      },
      /q_proj\+k_proj\+v_proj.residual is missing.*--no-compensation/,
    ],
    [
      "of the same model at other bits",
      async (path) => cpSync(join(await quantized(4, "llama3-v5", "tcq-s-2"), "residual.safetensors"), path),
      /was made for other weights than those beside it.*--no-compensation/,
    ],
    [
      "of halfs, without scales to tell it by",
      async (path) => {
        const other = [await quantized(16, "llama3-v5", "tcq-s-2"), await quantized(16)];
        for (const [i, name] of ["residual.safetensors", "config.json"].entries()) {
          cpSync(join(other[i], name), join(path, "..", name));
        }
      },
      /was made for other weights than those beside it.*--no-compensation/,
    ],
    [
      "that is a folder",
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
      /names residual.safetensors, which is not beside it.*--no-compensation/,
    ],
    [
      "whose header claims more than the file has",
      (path) => {
        const bytes = readFileSync(path);
        bytes.writeBigUInt64LE(2n ** 40n);
        writeFileSync(path, bytes);
      },
      /claims a header of 1099511627776 bytes.*--no-compensation/,
    ],
    [
      "whose header has the rows of two inputs exchanged",
      (path) => {
        const text = readFileSync(path).toString("latin1");
        const exchanged = text
          .replace("layers.0.mlp.gate", "X")
          .replace("layers.1.mlp.gate", "layers.0.mlp.gate");
        writeFileSync(path, Buffer.from(exchanged.replace("X", "layers.1.mlp.gate"), "latin1"));
      },
      /was made for other weights/,
    ],
    [
      "with a scale that is no number",
      (path) => {
        const bytes = readFileSync(path);
        bytes.writeFloatLE(Number.NaN, 8 + Number(bytes.readBigUInt64LE(0)));
        writeFileSync(path, bytes);
      },
      /holds a scale that is negative or no number/,
    ],
  ];

  it.each(damage)(
    "%s: an error that says what to do, and the model runs without",
    async (_, harm, message) => {
      const folder = await quantized(4);
      await harm(join(folder, "residual.safetensors"));
      const loading = logitsOf(folder, few);
      await expect(loading).rejects.toThrow(CheckpointError);
      await expect(loading).rejects.toThrow(message);
      expect((await logitsOf(folder, false)).length).toBeGreaterThan(0);
    },
  );

  it.each([1, 2])(
    "cut short while the model runs on %i threads: an error, never an answer",
    async (threads) => {
      const folder = await quantized(4);
      const path = join(folder, "residual.safetensors");
      const use = async (model: Model) => {
        await model.runner.step(input, "all");
        truncateSync(path, 4000);
      };
      const run = logitsOf(folder, { ...all, store: "file" }, { threads, use });
      await expect(run).rejects.toThrow(/residual.safetensors: ends earlier.*--no-compensation/);
    },
  );

  it("restored after it could not be read: the model goes on", async () => {
    const folder = await quantized(4);
    const path = join(folder, "residual.safetensors");
    const wanted = await logitsOf(folder, few);
    const use = async (model: Model) => {
      const bytes = readFileSync(path);
      await model.runner.step({ ids: [1], positions: [0] }, "last");
      truncateSync(path, 4000);
      await expect(model.runner.step({ ids: [2], positions: [1] }, "last")).rejects.toThrow(CheckpointError);
      // The same file, not another of its name.
      writeFileSync(path, bytes);
    };
    expect(await logitsOf(folder, { ...few, store: "file" }, { use })).toEqual(wanted);
  });

  it("that a device fails to read in the middle of a step: an error, and the step can be run again", async () => {
    let [reads, failing] = [0, Infinity];
    const read = (...args: [number, Uint8Array, number, number, number]) => {
      if (++reads === failing) throw Object.assign(new Error("EIO: i/o error, read"), { errno: -5 });
      return readSync(...args);
    };
    const checkpoint = await openCheckpoint(await quantized(4));
    const backend = await openWasm({ fetchRows: (memory) => rowFetcher(read, memory) });
    const model = await Model.load(checkpoint, backend, { compensation: { ...few, store: "file" } });
    const { runner } = model;
    const wanted = await runner.step(input, "all");
    const whole = reads;
    // One for the inputs of each kind of layer: their rows are neighbours.
    expect(whole).toBe(8);
    for (const at of [1, 4, 8]) {
      [reads, failing] = [0, at];
      const step = runner.step(input, "all");
      await expect(step).rejects.toThrow(CheckpointError);
      await expect(step).rejects.toThrow(
        /residual.safetensors: cannot be read \(error 5\).*--no-compensation/,
      );
      expect(await runner.step(input, "all")).toEqual(wanted);
    }
    model.dispose();
    await checkpoint.close();
  });

  it("deleted while the model runs: the open file goes on", async () => {
    const folder = await quantized(4);
    const wanted = await logitsOf(folder, few);
    const use = async () => rmSync(join(folder, "residual.safetensors"));
    expect(await logitsOf(folder, { ...few, store: "file" }, { use })).toEqual(wanted);
  });
});

it("rows that stay in the file take none of the backend's memory", async () => {
  const folder = await quantized(16);
  const bytes: number[] = [];
  for (const compensation of [false, all, { ...all, store: "file" }] as const) {
    await logitsOf(folder, compensation, { use: async ({ backend }) => bytes.push(backend.bytesAllocated) });
  }
  const [without, memory, file] = bytes;
  const scales = 4 * 2 * (3 * 64 + 64 + 2 * 64 + 64);
  expect(file - without).toBe(scales);
  expect(memory - file).toBeGreaterThan(0.9 * statSync(join(folder, "residual.safetensors")).size - scales);
});

it.each([
  [{ channels: 32 }, /compensation.channels is 32: give 0 to 1024 for each of qkv, o, gateUp, down/],
  [{ channels: uniformShares(-1) }, /channels is .*-1/],
  [{ channels: uniformShares(Number.NaN) }, /channels is /],
  [{ channels: { qkv: 32 } }, /channels is {"qkv":32}/],
  [{ select: "largest" }, /select is "largest": give one of exact, bucket/],
  [{ readers: 0, store: "file" }, /readers is 0: give a number of threads/],
  [{ store: "disk" }, /store is "disk": give memory or file/],
])("refuses %j", async (given, message) => {
  const loading = logitsOf(await quantized(4), given as unknown as CompensationOptions);
  await expect(loading).rejects.toThrow(UsageError);
  await expect(loading).rejects.toThrow(message);
});

it("shares are channels of 1024 or percents, one or four of them", () => {
  expect(parseShares("32", "--channels")).toEqual(uniformShares(32));
  expect(parseShares("12.5%", "--channels")).toEqual(uniformShares(128));
  expect(parseShares("8,0, 25%,64", "--channels")).toEqual({ qkv: 8, o: 0, gateUp: 256, down: 64 });
  for (const text of ["", "x", "-1", "2000", "101%", "1,2", "1,2,3,4,5", "1e9"]) {
    expect(() => parseShares(text, "--channels")).toThrow(UsageError);
  }
});
