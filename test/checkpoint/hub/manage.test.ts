import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listCached, pull, removeCached, showCached } from "../../../src/checkpoint/hub/node.ts";
import { UsageError } from "../../../src/errors.ts";
import { COMMIT, type FakeHub, noise, startFakeHub } from "./fakeHub.ts";

const SECOND = COMMIT.replace("0", "f");
const SHARED = noise(5000);

let hub: FakeHub;
beforeEach(async () => {
  hub = await startFakeHub({ "m-Q4_K_M.gguf": SHARED, "m-Q8_0.gguf": noise(7000, 2) });
  await pull("a/b", hub.options);
  await pull("a/b:Q8_0", hub.options);
  hub.commit = SECOND;
  hub.files.set("m-Q8_0.gguf", noise(9000, 3));
  await pull("a/b@v2", hub.options);
  await pull("a/b@v2:Q8_0", hub.options);
});
afterEach(() => hub.close());

const blobs = () => readdir(join(hub.home, "hub", "models--a--b", "blobs"));

describe("the cache", () => {
  it("is listed, whoever filled it", async () => {
    const models = await listCached(hub.options);
    expect(models).toMatchObject([
      { repository: "a/b", commit: COMMIT, revisions: ["main"], bytes: 12_000, format: "gguf" },
      { repository: "a/b", commit: SECOND, revisions: ["v2"], bytes: 14_000, format: "gguf" },
    ]);
    expect(await listCached({ env: { HF_HOME: join(hub.home, "nowhere") } })).toEqual([]);
  });

  it("is shown, each blob counted once, with unfinished downloads", async () => {
    hub.files.set("m-Q2_K.gguf", noise(100_000));
    hub.intercept = ({ host, range }, response) => {
      if (host !== "storage" || range?.startsWith("bytes=0-")) return false;
      response.destroy();
      return true;
    };
    await expect(pull("a/b:Q2_K", { ...hub.options, connections: 1 })).rejects.toThrow();
    const shown = await showCached("a/b", hub.options);
    expect(shown.snapshots).toHaveLength(2);
    expect(shown.unfinished).toMatchObject([{ receivedBytes: 65_536, totalBytes: 100_000 }]);
    expect((await showCached("a/b@v2", hub.options)).snapshots).toMatchObject([{ commit: SECOND }]);
    await removeCached("a/b", hub.options);
    await expect(showCached("a/b", hub.options)).rejects.toThrow(UsageError);
  });

  it("gives back a snapshot but not what another needs", async () => {
    expect((await removeCached("a/b@v2", hub.options)).freedBytes).toBeGreaterThanOrEqual(9000);
    expect(await blobs()).toHaveLength(2);
    expect((await listCached(hub.options)).map(({ commit }) => commit)).toEqual([COMMIT]);
    await expect(removeCached("a/b@v2", hub.options)).rejects.toThrow(UsageError);
    expect((await pull("a/b", { env: { ...hub.options.env, HF_HUB_OFFLINE: "1" } })).commit).toBe(COMMIT);
  });

  it("gives back one quantization", async () => {
    const { removed } = await removeCached("a/b@main:q8_0", hub.options);
    expect(removed).toEqual([join(hub.home, "hub", "models--a--b", "snapshots", COMMIT, "m-Q8_0.gguf")]);
    expect(await blobs()).toHaveLength(2);
    await expect(removeCached("a/b:Q2_K", hub.options)).rejects.toThrow(UsageError);
    await removeCached("a/b:Q4_K_M", hub.options);
    expect(await blobs()).toHaveLength(1);
    expect((await listCached(hub.options)).map(({ commit }) => commit)).toEqual([SECOND]);
  });

  it("gives back everything", async () => {
    expect((await removeCached("a/b", hub.options)).freedBytes).toBeGreaterThanOrEqual(21_000);
    expect(existsSync(join(hub.home, "hub", "models--a--b"))).toBe(false);
    await expect(removeCached("../b", hub.options)).rejects.toThrow(UsageError);
  });
});
