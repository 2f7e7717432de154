import { existsSync } from "node:fs";
import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withLock } from "../../../src/checkpoint/hub/lock.node.ts";
import { nodeSystem } from "../../../src/checkpoint/hub/system.node.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "halftone-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const system = { ...nodeSystem, sleep: (_: number, signal?: AbortSignal) => nodeSystem.sleep(5, signal) };

describe("lock", () => {
  it("lets one in at a time, and is gone afterwards, also after a failure", async () => {
    const path = join(folder, "deep", "x.lock");
    let inside = 0;
    const body = async () => {
      expect(++inside).toBe(1);
      await nodeSystem.sleep(10);
      inside--;
    };
    await Promise.all(Array.from({ length: 4 }, () => withLock(path, system, undefined, body)));
    await expect(withLock(path, system, undefined, () => Promise.reject(new Error("no")))).rejects.toThrow(
      "no",
    );
    expect(existsSync(path)).toBe(false);
  });

  it("is waited for while its owner lives", async () => {
    const path = join(folder, "x.lock");
    await writeFile(path, JSON.stringify({ host: "another", pid: 1, id: "" }));
    const signal = AbortSignal.timeout(50);
    await expect(withLock(path, system, signal, async () => {})).rejects.toThrow(/timeout/);
    expect(existsSync(path)).toBe(true);
  });

  it("is taken from an owner that died or no longer refreshes it", async () => {
    const path = join(folder, "x.lock");
    // Above the largest process id of any system.
    await writeFile(path, JSON.stringify({ host: hostname(), pid: 2 ** 30, id: "" }));
    expect(await withLock(path, system, undefined, async () => 1)).toBe(1);
    await writeFile(path, "");
    await utimes(path, 0, 0);
    expect(await withLock(path, system, undefined, async () => 2)).toBe(2);
  });
});
