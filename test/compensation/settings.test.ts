import { expect, it } from "vitest";
import { blendOf } from "../../src/compensation/settings.ts";

it("calibration for compensation heeds more of all inputs the more bits there are", () => {
  const found = [1.5, 2, 2.5, 3, 4, 8].map(blendOf);
  for (const [i, wanted] of [0.1, 0.1, 0.2, 0.3, 0.5, 1].entries()) expect(found[i]).toBeCloseTo(wanted, 12);
});
