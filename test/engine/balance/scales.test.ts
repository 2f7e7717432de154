import { expect, it } from "vitest";
import { scalableInputs } from "../../../src/engine/balance/inputs.ts";
import { channelScales } from "../../../src/engine/balance/scales.ts";
import { floatDecoder } from "../../../src/engine/quantize/plan.ts";
import { openFixture } from "../../models/fixture.ts";

const alone = { sourceSize: 4, sourceChannel: (channel: number) => channel };

it("scales by the root of the ratio of input and weights, in the geometric mean by 1", () => {
  // Root mean squares 1, 2, 4, 8 over 4, 2, 1, 2.
  const scales = channelScales(
    alone,
    { inputs: Float64Array.of(1, 4, 16, 64), weights: Float64Array.of(16, 4, 1, 4) },
    0.5,
  );
  const expected = [1 / 4, 1, 4, 4].map((ratio) => Math.sqrt(ratio / Math.SQRT2));
  expect([...scales]).toEqual(expected.map((each) => expect.closeTo(each, 6)));
});

it("does what it can for channels that are never used", () => {
  const ones = new Float64Array(4).fill(1);
  const scales = channelScales(alone, { inputs: Float64Array.of(0, 1, 1, 1), weights: ones }, 0.5);
  expect(scales[1] / scales[0]).toBeCloseTo(Math.sqrt(1 / (1e-3 * 0.75)), 3);
  for (const nothing of [new Float64Array(4), ones.map(() => Number.NaN), ones.map(() => Infinity)]) {
    expect([...channelScales(alone, { inputs: nothing, weights: ones }, 0.5)]).toEqual([1, 1, 1, 1]);
    expect([...channelScales(alone, { inputs: ones, weights: nothing }, 0.5)]).toEqual([1, 1, 1, 1]);
  }
});

it("pools the query heads of a head of keys and values", async () => {
  const checkpoint = await openFixture("llama-linear");
  const decoder = floatDecoder(checkpoint);
  const { heads, kvHeads, headSize } = decoder.layers[0].attention;
  expect(heads).toBeGreaterThan(kvHeads);
  const input = scalableInputs(decoder).find(({ kind }) => kind === "o")!;
  const squares = (seed: number) =>
    Float64Array.from({ length: heads * headSize }, (_, i) => 1 + ((i * i + seed * i) % 13));
  const [x, w] = [squares(1), squares(5)];
  const pool = (values: Float64Array, row: number) => {
    let sum = 0;
    for (let head = 0; head < heads; head++) {
      if (Math.floor(head / (heads / kvHeads)) !== Math.floor(row / headSize)) continue;
      sum += values[head * headSize + (row % headSize)];
    }
    return sum;
  };
  const scales = channelScales(input, { inputs: x, weights: w }, 0.5);
  expect(scales.length).toBe(kvHeads * headSize);
  const ratio = (row: number) => (pool(x, row) / pool(w, row)) ** 0.25;
  for (let row = 1; row < scales.length; row++) {
    expect(scales[row] / scales[0]).toBeCloseTo(ratio(row) / ratio(0), 5);
  }
});
