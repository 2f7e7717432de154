import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFolder } from "../../src/checkpoint/outputFolder.node.ts";
import { temporaryFolder } from "./temporary.ts";

test("makes the folders above it", async () => {
  const folder = join(temporaryFolder(), "a", "b", "c");
  const output = await createFolder(`${folder}/`);
  expect(existsSync(folder)).toBe(false);
  await output.finish();
  expect(existsSync(folder)).toBe(true);
});

// A recursive mkdir never ends there.
test.runIf(process.platform === "linux")("refuses a place where nothing can be made", async () => {
  await expect(createFolder("/proc/out/deep")).rejects.toThrow("/proc/out/deep: cannot be written (ENOENT)");
});
