import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Progress, pull, resolveHubModel } from "../../../src/checkpoint/hub/node.ts";
import { nodeSystem } from "../../../src/checkpoint/hub/system.node.ts";
import { HalftoneError, UsageError } from "../../../src/errors.ts";
import {
  COMMIT,
  cutAfter,
  type FakeHub,
  gitSha1,
  noise,
  sendBytes,
  sha256,
  startFakeHub,
} from "./fakeHub.ts";

const CONFIG = '{"model_type":"llama"}';
const WEIGHTS = noise(300_000);
const FILES = {
  "config.json": CONFIG,
  "tokenizer.json": "{}",
  "README.md": "# b",
  "model.safetensors": WEIGHTS,
};

let hub: FakeHub;
afterEach(() => hub.close());

const folder = () => join(hub.home, "hub", "models--a--b");
const blobs = () => readdir(join(folder(), "blobs")).catch(() => []);
const weights = async () =>
  sha256(await readFile(join(folder(), "snapshots", hub.commit, "model.safetensors")));
const isWeights = (path: string) => path.endsWith("model.safetensors");

describe("pull", () => {
  it("writes the cache as other tools do, with only the files needed", async () => {
    hub = await startFakeHub(FILES);
    const told: Progress[] = [];
    const model = await pull("a/b", { ...hub.options, onProgress: (progress) => told.push(progress) });
    expect(model).toMatchObject({ format: "safetensors", commit: COMMIT, file: undefined });
    expect(model.folder).toBe(join(folder(), "snapshots", COMMIT));
    expect(await readFile(join(folder(), "refs", "main"), "utf8")).toBe(COMMIT);
    expect((await readdir(model.folder)).sort()).toEqual([
      "config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
    expect(await readlink(join(model.folder, "model.safetensors"))).toBe(`../../blobs/${sha256(WEIGHTS)}`);
    expect(await blobs()).toContain(gitSha1(new TextEncoder().encode(CONFIG)));
    expect(await weights()).toBe(sha256(WEIGHTS));
    expect(told.at(-1)?.receivedBytes).toBe(WEIGHTS.length + CONFIG.length + 2);
    expect(told.at(-1)?.totalBytes).toBe(told.at(-1)?.receivedBytes);
    expect(hub.seen.filter(({ range }) => range !== undefined).length).toBeGreaterThanOrEqual(5);

    hub.seen.length = 0;
    await pull("a/b", hub.options);
    expect(hub.seen).toHaveLength(1);
    await resolveHubModel("a/b", hub.options);
    expect(hub.seen).toHaveLength(1);
  });

  it("never shows the token to another host", async () => {
    hub = await startFakeHub(FILES);
    await pull("a/b", hub.options);
    const storage = hub.seen.filter(({ host }) => host === "storage");
    expect(storage.length).toBeGreaterThan(0);
    for (const { host, authorization } of hub.seen)
      expect(authorization).toBe(host === "hub" ? "Bearer hf_secret" : undefined);
  });

  it("reads the token from its file", async () => {
    hub = await startFakeHub(FILES);
    await writeFile(join(hub.home, "token"), "hf_file\n");
    await pull("a/b", { ...hub.options, env: { ...hub.options.env, HF_TOKEN: undefined } });
    expect(hub.seen[0].authorization).toBe("Bearer hf_file");
  });

  it("fetches shards in subfolders of pull requests, and asks where the listing is silent", async () => {
    const index = JSON.stringify({ weight_map: { x: "w/1.safetensors", y: "w/2.safetensors" } });
    const shards = {
      "w/1.safetensors": noise(2000, 2),
      "w/2.safetensors": noise(70_000, 3),
      "w/3.safetensors": "?",
    };
    hub = await startFakeHub({ "config.json": CONFIG, "model.safetensors.index.json": index, ...shards });
    hub.listing = ({ sha, siblings }) => ({
      sha,
      siblings: siblings.map(({ rfilename }) => ({ rfilename })),
    });
    const model = await pull("a/b@refs/pr/1", hub.options);
    expect(await readFile(join(folder(), "refs", "refs", "pr", "1"), "utf8")).toBe(COMMIT);
    expect(await readlink(join(model.folder, "w/2.safetensors"))).toBe(
      `../../../blobs/${sha256(shards["w/2.safetensors"])}`,
    );
    expect((await readdir(join(model.folder, "w"))).sort()).toEqual(["1.safetensors", "2.safetensors"]);
  });

  it("keeps plain files where there are no links", async () => {
    hub = await startFakeHub(FILES);
    const symlink = () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }));
    const model = await pull("a/b", { ...hub.options, system: { ...hub.options.system, symlink } });
    expect((await lstat(join(model.folder, "model.safetensors"))).isFile()).toBe(true);
    expect(await weights()).toBe(sha256(WEIGHTS));
    expect((await resolveHubModel("a/b", { env: { ...hub.options.env, HF_HUB_OFFLINE: "1" } })).commit).toBe(
      COMMIT,
    );
  });

  it("lets two pulls of the same model share the work", async () => {
    hub = await startFakeHub(FILES);
    const options = { ...hub.options, system: {} };
    await Promise.all([pull("a/b", options), pull("a/b", options)]);
    expect(await weights()).toBe(sha256(WEIGHTS));
    const bytes = hub.seen.filter(({ host, method }) => host === "storage" && method === "GET");
    expect(bytes).toHaveLength(5);
    expect((await blobs()).filter((name) => name.includes("incomplete"))).toEqual([]);
  });
});

describe("a server that misbehaves", () => {
  it("cuts the connection: the rest is fetched", async () => {
    hub = await startFakeHub(FILES);
    let cuts = 0;
    hub.intercept = ({ host, path }, response, request) => {
      if (host !== "storage" || !isWeights(path) || cuts++ >= 4) return false;
      cutAfter(response, request, WEIGHTS, 10_000);
      return true;
    };
    await pull("a/b", hub.options);
    expect(cuts).toBeGreaterThan(4);
    expect(await weights()).toBe(sha256(WEIGHTS));
  });

  it("cuts until we give up: the next pull continues, its bytes are checked", async () => {
    hub = await startFakeHub(FILES);
    hub.intercept = ({ host, range }, response, request) => {
      if (host !== "storage" || range === undefined || /=0-/.test(range)) return false;
      cutAfter(response, request, WEIGHTS, 100);
      return true;
    };
    const failure = await pull("a/b", { ...hub.options, connections: 1 }).catch((error) => error);
    expect(failure).toBeInstanceOf(HalftoneError);
    expect(failure.message).toMatch(
      /a\/b@main: model\.safetensors: .*(?:cut at byte|connection).*tried 4 times.*continues/,
    );
    expect(existsSync(join(folder(), "blobs", sha256(WEIGHTS)))).toBe(false);
    hub.intercept = () => false;
    hub.seen.length = 0;
    const told: Progress[] = [];
    await pull("a/b", { ...hub.options, onProgress: (progress) => told.push(progress) });
    expect(await weights()).toBe(sha256(WEIGHTS));
    const ranges = hub.seen.flatMap(({ host, range }) =>
      host === "storage" && range !== undefined ? [range] : [],
    );
    expect(ranges.some((range) => range.startsWith("bytes=0-"))).toBe(false);
    expect(ranges.some((range) => /^bytes=(?!65536)\d+-131071$/.test(range))).toBe(true);
    expect(told.at(-1)?.receivedBytes).toBe(told.at(-1)?.totalBytes);
  });

  it("starts again when the bytes of the earlier pull were damaged on disk", async () => {
    hub = await startFakeHub(FILES);
    const stop = new AbortController();
    hub.intercept = ({ range }) => {
      if (range?.startsWith("bytes=131072")) stop.abort();
      return false;
    };
    await expect(pull("a/b", { ...hub.options, connections: 1, signal: stop.signal })).rejects.toThrow(
      /abort/i,
    );
    const unfinished = join(folder(), "blobs", `${sha256(WEIGHTS)}.halftone.incomplete`);
    const bytes = await readFile(unfinished);
    bytes[5] ^= 1;
    await writeFile(unfinished, bytes);
    await pull("a/b", hub.options);
    expect(await weights()).toBe(sha256(WEIGHTS));
  });

  it("ignores ranges: the whole file is taken in one piece", async () => {
    hub = await startFakeHub(FILES);
    hub.intercept = ({ host, path }, response, request) => {
      if (host !== "storage" || !isWeights(path)) return false;
      delete request.headers.range;
      sendBytes(response, request, WEIGHTS);
      return true;
    };
    const told: Progress[] = [];
    await pull("a/b", { ...hub.options, onProgress: (progress) => told.push(progress) });
    expect(await weights()).toBe(sha256(WEIGHTS));
    expect(told.at(-1)?.receivedBytes).toBe(told.at(-1)?.totalBytes);
  });

  it("is busy: Retry-After is honoured, up to a bound", async () => {
    hub = await startFakeHub(FILES);
    const waits: number[] = [];
    const sleep = async (milliseconds: number) => void waits.push(milliseconds);
    let busy = 2;
    let after = "7";
    hub.intercept = (_, response) => {
      if (busy-- <= 0) return false;
      response.writeHead(busy === 1 ? 429 : 503, { "retry-after": after }).end();
      return true;
    };
    await pull("a/b", { ...hub.options, system: { sleep } });
    expect(waits).toEqual([7000, 7000]);
    busy = 1;
    after = "86400";
    await expect(pull("a/b", hub.options)).rejects.toThrow(/429|503.*asks to wait 86400 s/);
    busy = 100;
    after = "1";
    await expect(pull("a/b", hub.options)).rejects.toThrow(/tried 4 times/);
  });

  it("stalls: the connection is given up and the rest fetched", async () => {
    hub = await startFakeHub(FILES);
    let stalls = 1;
    hub.intercept = ({ host, path }, response) => {
      if (host !== "storage" || !isWeights(path) || stalls-- <= 0) return false;
      response.writeHead(206, { "content-range": `bytes 0-65535/${WEIGHTS.length}` });
      response.write(WEIGHTS.subarray(0, 1000));
      return true;
    };
    await pull("a/b", { ...hub.options, connections: 1, stallMs: 300 });
    expect(await weights()).toBe(sha256(WEIGHTS));
    expect(hub.seen.some(({ range }) => range === "bytes=1000-65535")).toBe(true);
  });

  it("lets signed addresses expire: a new one is asked for", async () => {
    hub = await startFakeHub(FILES);
    let served = 0;
    hub.intercept = ({ host }, response) => {
      if (host !== "storage" || served++ !== 2) return false;
      response.writeHead(403).end();
      return true;
    };
    await pull("a/b", hub.options);
    expect(await weights()).toBe(sha256(WEIGHTS));
  });

  it("sends other bytes: nothing lies under the final name", async () => {
    hub = await startFakeHub(FILES);
    hub.intercept = ({ path }, response, request) => {
      if (!path.endsWith("config.json")) return false;
      sendBytes(response, request, new TextEncoder().encode(CONFIG.replace("llama", "evil!")));
      return true;
    };
    await expect(pull("a/b", hub.options)).rejects.toThrow(/config\.json: .*checksum/);

    const wrong = noise(WEIGHTS.length, 99);
    hub.intercept = ({ host, path }, response, request) => {
      if (host !== "storage" || !isWeights(path)) return false;
      sendBytes(response, request, wrong);
      return true;
    };
    await expect(pull("a/b", hub.options)).rejects.toThrow(/checksum/);
    expect((await blobs()).filter((name) => name.startsWith(sha256(WEIGHTS)))).toEqual([]);
    expect(existsSync(join(folder(), "refs", "main"))).toBe(false);
  });

  it("lies about the size", async () => {
    hub = await startFakeHub(FILES);
    const claim = (size: number) => {
      hub.listing = ({ sha, siblings }) => ({
        sha,
        siblings: siblings.map((file) => (file.lfs ? { ...file, lfs: { ...file.lfs, size } } : file)),
      });
    };
    claim(200_000);
    await expect(pull("a/b", hub.options)).rejects.toThrow(/announced with 200000 bytes but has 300000/);
    claim(50_000);
    await expect(pull("a/b", hub.options)).rejects.toThrow(/announced with 50000 bytes but has 300000/);
    claim(Number.MAX_SAFE_INTEGER);
    await expect(pull("a/b", hub.options)).rejects.toThrow(/free some space/);
    const system = { ...hub.options.system, freeBytes: async () => undefined };
    claim(2 ** 40);
    await expect(pull("a/b", { ...hub.options, system })).rejects.toThrow(/bytes but has 300000/);
  });

  it("sends names that would leave the folder", async () => {
    hub = await startFakeHub(FILES);
    for (const rfilename of ["../../evil.gguf", "/tmp/evil.gguf", "C:\\evil.gguf", "a\\..\\..\\evil.gguf"]) {
      hub.listing = ({ sha, siblings }) => ({ sha, siblings: [...siblings, { rfilename, size: 1 }] });
      await expect(pull("a/b", hub.options)).rejects.toThrow(/leaves the model's folder/);
    }
    hub.listing = ({ siblings }) => ({ sha: "../../../evil", siblings });
    await expect(pull("a/b", hub.options)).rejects.toThrow(/no commit/);
    hub.listing = (listing) => listing;
    await expect(pull(`a/b@${COMMIT.replace("0", "f")}`, hub.options)).rejects.toThrow(/sends the commit/);
    hub.listing = () => "what?";
    await expect(pull("a/b", hub.options)).rejects.toThrow(/no JSON object/);
    expect(existsSync(join(hub.home, "hub"))).toBe(false);
  });

  it("redirects for ever, or to something that is no web address", async () => {
    hub = await startFakeHub(FILES);
    for (const location of ["/loop", "file:///etc/passwd", "::"]) {
      hub.intercept = (_, response) => {
        response.writeHead(302, { location }).end();
        return true;
      };
      await expect(pull("a/b", hub.options)).rejects.toThrow(HalftoneError);
    }
  });
});

describe("refusals", () => {
  it.each([
    [401, "GatedRepo", /accept the model's licence at http.*\/a\/b and set HF_TOKEN/],
    [403, "GatedRepo", /accept the model's licence/],
    [401, "RepoNotFound", /no such repository/],
    [404, "RevisionNotFound", /no revision "v9"/],
    [404, "", /a\/b@v9: no such repository or revision/],
    [400, "", /answered 400/],
  ])("%s %s", async (status, code, message) => {
    hub = await startFakeHub(FILES);
    hub.intercept = (_, response) => {
      response.writeHead(status, { "x-error-code": code }).end();
      return true;
    };
    const failure = await pull("a/b@v9", hub.options).catch((error) => error);
    expect(failure).toBeInstanceOf(HalftoneError);
    expect(failure.message).toMatch(message);
    expect(failure.message).not.toContain("hf_secret");
    expect(hub.seen).toHaveLength(1);
  });

  it("names repository, revision and file of a missing file", async () => {
    hub = await startFakeHub(FILES);
    hub.intercept = ({ path }) =>
      path.endsWith("tokenizer.json") && hub.files.delete("tokenizer.json") && false;
    await expect(pull("a/b", hub.options)).rejects.toThrow(/a\/b@main: tokenizer\.json: no such file/);
  });

  it("reports a hub that cannot be reached", async () => {
    hub = await startFakeHub(FILES);
    const env = { ...hub.options.env, HF_ENDPOINT: "http://127.0.0.1:9" };
    await expect(pull("a/b", { ...hub.options, env })).rejects.toThrow(/127\.0\.0\.1:9.*tried 4 times/);
    await expect(pull("a/b", { ...hub.options, env: { ...env, HF_ENDPOINT: "ftp://x" } })).rejects.toThrow(
      UsageError,
    );
    await expect(pull("a/b", { ...hub.options, env: { ...env, HF_TOKEN: "a\r\nb: c" } })).rejects.toThrow(
      UsageError,
    );
  });

  it("reports a full disk, keeps what came and continues", async () => {
    hub = await startFakeHub(FILES);
    const options = { ...hub.options, connections: 1 };
    const open: typeof nodeSystem.open = async (path) => {
      const file = await nodeSystem.open(path);
      return {
        ...file,
        write: async (bytes, position) => {
          if (position + bytes.length > 200_000)
            throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
          await file.write(bytes, position);
        },
      };
    };
    const failure = await pull("a/b", { ...options, system: { ...options.system, open } }).catch(
      (error) => error,
    );
    expect(failure).toBeInstanceOf(HalftoneError);
    expect(failure.message).toMatch(/model\.safetensors .*the disk is full.*HF_HUB_CACHE/);
    expect(await blobs()).not.toContain(sha256(WEIGHTS));
    hub.seen.length = 0;
    await pull("a/b", options);
    expect(hub.seen.some(({ range }) => range?.startsWith("bytes=0-"))).toBe(false);
    expect(await weights()).toBe(sha256(WEIGHTS));
  });

  it("says so before the first byte when the files cannot fit", async () => {
    hub = await startFakeHub(FILES);
    const system = { ...hub.options.system, freeBytes: async () => 1000 };
    await expect(pull("a/b", { ...hub.options, system })).rejects.toThrow(
      /1000 bytes free .* but 300024 are needed/,
    );
    expect(hub.seen).toHaveLength(1);
  });

  it("stops when asked to", async () => {
    hub = await startFakeHub(FILES);
    const stop = new AbortController();
    hub.intercept = ({ host }) => {
      if (host === "storage") stop.abort(new Error("enough"));
      return host === "storage";
    };
    await expect(pull("a/b", { ...hub.options, signal: stop.signal })).rejects.toThrow("enough");
    await expect(pull("a/b", { ...hub.options, signal: stop.signal })).rejects.toThrow("enough");
    expect(await blobs()).not.toContain(sha256(WEIGHTS));
  });
});

describe("the cache of other tools", () => {
  it("serves offline what lies there, and says what is missing", async () => {
    hub = await startFakeHub({});
    const options = { ...hub.options, env: { ...hub.options.env, HF_HUB_OFFLINE: "1" } };
    await expect(resolveHubModel("a/b", options)).rejects.toThrow(/not there.*HF_HUB_OFFLINE/);
    const snapshot = join(folder(), "snapshots", COMMIT);
    await mkdir(join(folder(), "blobs"), { recursive: true });
    await mkdir(join(folder(), "refs"));
    await mkdir(snapshot, { recursive: true });
    await writeFile(join(folder(), "refs", "main"), COMMIT);
    await writeFile(join(folder(), "blobs", "x"), "gguf");
    await symlink("../../blobs/x", join(snapshot, "m-Q5_K_M.gguf"));
    await symlink("../../blobs/gone", join(snapshot, "m-Q4_K_M.gguf"));
    const file = join(snapshot, "m-Q5_K_M.gguf");
    expect(await resolveHubModel("a/b", options)).toMatchObject({ format: "gguf", file });
    expect(await resolveHubModel(`a/b@${COMMIT}:q5_k_m`, options)).toMatchObject({ file });
    expect(await pull("a/b", options)).toMatchObject({ file });
    await expect(resolveHubModel("a/b:Q4_K_M", options)).rejects.toThrow(/Q4_K_M/);
    await expect(resolveHubModel("a/b@v2", options)).rejects.toThrow(UsageError);
    expect(hub.seen).toEqual([]);
  });

  it("fetches what a partial snapshot lacks", async () => {
    hub = await startFakeHub(FILES);
    const env = { HF_HUB_CACHE: join(hub.home, "elsewhere"), HF_ENDPOINT: hub.options.env?.HF_ENDPOINT };
    const snapshot = join(hub.home, "elsewhere", "models--a--b", "snapshots", COMMIT);
    await mkdir(snapshot, { recursive: true });
    await writeFile(join(snapshot, "config.json"), CONFIG);
    const model = await resolveHubModel(`a/b@${COMMIT}`, { ...hub.options, env });
    expect(model.folder).toBe(snapshot);
    expect(hub.seen.some(({ path }) => path.endsWith("/config.json"))).toBe(false);
    expect((await readdir(snapshot)).sort()).toEqual(["config.json", "model.safetensors", "tokenizer.json"]);
  });
});
