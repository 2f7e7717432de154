import { expect, test } from "vitest";
import { modelPlanJsonSchema } from "../../src/budget/modelPlan.ts";

test("docs/plan.schema.json is the schema in force", async () => {
  const text = `${JSON.stringify(modelPlanJsonSchema(), null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../../docs/plan.schema.json");
});
