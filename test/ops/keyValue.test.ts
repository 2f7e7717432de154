import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { decodeHeads, encodeHeads, keyValueHeadBytes } from "../../src/ops/attention/keyValue.ts";
import { gaussian } from "../../src/ops/operationCase.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";

/** Largest error of a head, relative to its largest value: half a step of the type. */
const errors = { f32: 0, f16: 2 ** -11, int8: 0.5 / 127 + 1e-7 } as const;
const types = ["f32", "f16", "int8"] as const;
const sizes = [1, 17, 20, 31, 64, 96];

describe.each(types)("keys and values as %s", (type) => {
  it("come back with an error of half a step at most", () => {
    for (const headSize of sizes) {
      const heads = gaussian(5 * headSize, 3, 2);
      const bytes = encodeHeads(type, heads, headSize);
      expect(bytes.length).toBe(5 * keyValueHeadBytes(type, headSize));
      const read = decodeHeads(type, bytes, headSize);
      for (let at = 0; at < heads.length; at += headSize) {
        const head = heads.subarray(at, at + headSize);
        const peak = Math.max(...head.map(Math.abs));
        head.forEach((value, i) => {
          expect(Math.abs(read[at + i] - value)).toBeLessThanOrEqual(errors[type] * peak);
        });
      }
    }
  });

  it("are zeros where they were, and no numbers stay none", () => {
    const read = (value: number) => decodeHeads(type, encodeHeads(type, Float32Array.of(value, 0), 2), 2);
    expect([...read(0)]).toEqual([0, 0]);
    expect(Math.abs(read(1e-40)[0])).toBeLessThan(1e-30);
    expect(Number.isNaN(read(Number.NaN)[0])).toBe(true);
  });
});

describe.each(["relaxed", "plain"] as const)("the cache on wasm, %s SIMD", (simd) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await openWasm({ simd });
  });
  afterAll(() => backend.dispose());

  it.each(types)("holds what the reference's does, as %s", async (type) => {
    for (const headSize of sizes) {
      const reference = new ReferenceBackend();
      // Without a rope, what is stored is rounded alike to the bit.
      const [ours, theirs] = [await store(backend, type, headSize), await store(reference, type, headSize)];
      expect(ours).toEqual(theirs);
    }
  });
});

/** The bits of the keys of two sequences after tokens were stored in both. */
async function store(backend: Backend, type: (typeof types)[number], headSize: number): Promise<Int32Array> {
  const [rows, kvHeads, capacity] = [4, 2, 3];
  const byteLength = 2 * capacity * kvHeads * keyValueHeadBytes(type, headSize);
  const words = Math.ceil(byteLength / 4);
  const upload = (data: Float32Array | Int32Array) => {
    const slot = backend.allocate(data.byteLength);
    backend.upload(slot, data);
    return slot;
  };
  const k = upload(gaussian(rows * kvHeads * headSize, 4));
  const [keys, values] = [backend.allocate(words * 4), backend.allocate(words * 4)];
  const program = backend.record([
    {
      ...{ op: "ropeStore", q: k, k, v: upload(gaussian(rows * kvHeads * headSize, 5)), rotated: 0 },
      ...{ cache: { type, keys, values, capacity }, rows, heads: kvHeads, kvHeads, headSize },
      positions: upload(Int32Array.of(0, 2, 1, 0)),
      sequences: upload(Int32Array.of(0, 0, 1, 1)),
    },
  ]);
  await backend.run(program);
  return new Int32Array((await backend.readFloats(keys, words)).buffer);
}
