import fc from "fast-check";
import { expect, test } from "vitest";
import { drawCharts } from "../../src/plot/chart.ts";
import { linearScale, logScale } from "../../src/plot/scale.ts";

const extent = { from: 40, to: 440 };

test.each([
  ["linear", linearScale],
  ["logarithmic", logScale],
])("a %s scale covers its values with a few ascending ticks", (_, scale) => {
  const positive = fc.double({ min: 1e-9, max: 1e12, noNaN: true });
  fc.assert(
    fc.property(fc.array(positive, { maxLength: 9 }), (values) => {
      const { ticks, place } = scale(values, extent);
      expect(ticks.length).toBeGreaterThanOrEqual(2);
      expect(ticks.length).toBeLessThan(30);
      for (const [i, tick] of ticks.entries()) if (i > 0) expect(tick).toBeGreaterThan(ticks[i - 1]);
      for (const value of [...values, ...ticks]) {
        expect(place(value)).toBeGreaterThanOrEqual(extent.from - 1e-6);
        expect(place(value)).toBeLessThanOrEqual(extent.to + 1e-6);
      }
    }),
  );
});

test("ticks are round numbers", () => {
  expect(linearScale([1.5, 8], extent).ticks).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(logScale([1.1, 9], extent).ticks).toEqual([1, 2, 5, 10]);
  expect(logScale([3e-5, 0.2], extent).ticks).toEqual([1e-4, 1e-3, 1e-2, 0.1]);
});

test("charts share a legend, texts are escaped, bounds are dashed", () => {
  const chart = (title: string) => ({
    title,
    x: { title: "bits" },
    y: { title: "error", log: true },
    series: [
      { name: "a<b", points: [{ x: 1, y: 0.1, label: "one", title: "a-1" }] },
      { name: "bound", bound: true, points: [1, 2].map((x) => ({ x, y: 0.1 / x })) },
    ],
  });
  const svg = drawCharts([chart("first"), chart("second & last")]);
  expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="0 0 920 424"/);
  expect(svg.match(/a&lt;b/g)).toHaveLength(1);
  expect(svg).toContain("second &amp; last");
  expect(svg).toContain("stroke-dasharray");
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  const opened = svg.match(/<[a-z]+( [a-zA-Z-]+="[^"]*")*>/g)?.length;
  expect(svg.match(/<\/[a-z]+>/g)).toHaveLength(opened!);
});
