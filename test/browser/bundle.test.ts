import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { webWorkerSource } from "../../src/backends/wasm/workers.ts";
import { bundleForBrowser } from "../../tools/browser-bundle.ts";

test("what the browser entry imports is all there, and nothing of Node", async () => {
  const folder = mkdtempSync(join(tmpdir(), "halftone-bundle-"));
  try {
    const { modules, external } = await bundleForBrowser(folder);
    expect(external).toEqual([]);
    expect(modules.some((path) => path.endsWith("src/engine/model.ts"))).toBe(true);
    expect(modules.filter((path) => /node\.ts$|^node:|\/src\/(cli|server)\//.test(path))).toEqual([]);
    expect(readFileSync(join(folder, "worker.js"), "utf8")).toBe(webWorkerSource);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
