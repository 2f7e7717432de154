import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { uniformShares } from "../../src/compensation/settings.ts";
import { type PolicyMap, parsePolicyMap } from "../../src/mapping/policyFile.ts";
import { covers, mergeMaps, policyOf } from "../../src/mapping/policyMap.ts";
import { findPolicy, isFirstOffer, keepPolicy, originHere } from "../../src/mapping/store.node.ts";
import { tune } from "../../src/mapping/tune.ts";
import { openWasm } from "../../src/ops/wasm.ts";

const here = originHere(2);
const map: PolicyMap = {
  version: 1,
  ...here,
  shapes: [
    {
      ...{ n: 64, k: 32, scheme: "nuq-4", weightBits: 4, activationBits: 8 },
      points: [
        { m: 1, seconds: { padding: 1, "padding-decoded": 3 }, choice: "padding" },
        { m: 5, seconds: { padding: 5, "padding-decoded": 4 }, choice: "padding-decoded" },
      ],
    },
  ],
};
const shape = { n: 64, k: 32, scheme: "nuq-4", activations: "int8" } as const;

describe("a policy map", () => {
  it("is a table over M, the faster of two straight lines between points", () => {
    const policy = policyOf(map);
    // padding is at m; padding-decoded at 3 + (m - 1) / 4: they meet at 3.67.
    const choices = [1, 2, 3, 4, 5, 9, 2048, 9999].map((m) => policy({ ...shape, m }));
    expect(choices).toEqual([
      ...["padding", "padding", "padding"],
      ...["padding-decoded", "padding-decoded", "padding-decoded", "padding-decoded", "padding-decoded"],
    ]);
  });

  it("knows nothing of other shapes, schemes and precisions", () => {
    const policy = policyOf(map);
    for (const other of [{ n: 63 }, { k: 33 }, { scheme: "nuq-3" }, { activations: "int4" as const }]) {
      expect(policy({ ...shape, m: 1, ...other })).toBeUndefined();
    }
    expect(covers(map, [shape])).toBe(true);
    expect(covers(map, [{ ...shape, n: 1 }])).toBe(false);
  });

  it("takes newer shapes over older ones", () => {
    const newer = { ...map, shapes: [{ ...map.shapes[0], points: [map.shapes[0].points[1]] }] };
    const other = { ...map, shapes: [{ ...map.shapes[0], k: 48 }] };
    expect(mergeMaps(map, newer).shapes).toEqual(newer.shapes);
    expect(mergeMaps(map, other).shapes).toHaveLength(2);
  });

  it("keeps how other models are compensated, and of one what was found last", () => {
    const found = (layers: string, channels: number) => ({
      ...map,
      compensation: [{ layers, slowdown: 0.1, channels: uniformShares(channels) }],
    });
    const both = mergeMaps(mergeMaps(found("a", 8), found("b", 16)), found("a", 32));
    expect(both.compensation!.map(({ layers, channels }) => [layers, channels.down])).toEqual([
      ["b", 16],
      ["a", 32],
    ]);
    expect(mergeMaps(both, map).compensation).toEqual(both.compensation);
  });

  it.each([
    ["", /no JSON/],
    ["{", /no JSON/],
    ["[]", /no policy map/],
    [JSON.stringify({ ...map, version: 2 }), /version/],
    [JSON.stringify(map).replace('"padding-decoded"}', '"magic"}'), /shapes\.0\.points\.1\.choice/],
    [JSON.stringify(map).replace('"m":5', '"m":1e9'), /points\.1\.m/],
  ])("is refused when it is %s", (text, problem) => {
    expect(() => parsePolicyMap(text, "p.json")).toThrow(problem);
    expect(() => parsePolicyMap(text, "p.json")).toThrow(/p\.json: .*halftone tune/);
  });
});

describe("the cache of policy maps", () => {
  let folder: string;
  const env = () => ({ XDG_CACHE_HOME: folder });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "halftone-policy-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("gives back what was kept, for this machine and this number of threads", async () => {
    expect(await findPolicy(here, undefined, env())).toEqual({});
    await keepPolicy(map, env());
    expect(await findPolicy(here, undefined, env())).toEqual({ map });
    expect(await findPolicy(originHere(3), undefined, env())).toEqual({});
  });

  it("sets a damaged map of the cache aside with one line, and one from elsewhere", async () => {
    const path = await keepPolicy(map, env());
    await writeFile(path, (await readFile(path, "utf8")).slice(0, 40));
    expect((await findPolicy(here, undefined, env())).notice).toMatch(/^[^\n]*no JSON[^\n]*; set aside$/);
    const foreign = join(folder, "foreign.json");
    for (const [part, reason] of [
      [{ machine: "an abacus" }, /another machine \(an abacus\); set aside/],
      [{ engine: "steam" }, /another build/],
      [{ threads: 7 }, /7 threads, not 2/],
    ] as const) {
      await writeFile(foreign, JSON.stringify({ ...map, ...part }));
      expect((await findPolicy(here, foreign, env())).notice).toMatch(reason);
    }
  });

  it("fails when a file that was asked for is missing or damaged", async () => {
    const path = join(folder, "policy.json");
    await expect(findPolicy(here, path, env())).rejects.toThrow(/--policy .*cannot be read/);
    await writeFile(path, "{");
    await expect(findPolicy(here, path, env())).rejects.toThrow(/policy\.json: no JSON/);
  });

  it("offers to tune once", async () => {
    expect([await isFirstOffer(env()), await isFirstOffer(env())]).toEqual([true, false]);
  });
});

describe("tuning", () => {
  it("measures every strategy of the layout it settles on, and leaves floats out", async () => {
    const shapes = [
      { n: 48, k: 32, scheme: "uniform-2" },
      { n: 16, k: 32, scheme: "f32" },
    ];
    const options = { activationBits: [8, 4] as const, tokens: [1, 2, 3], seconds: 1e-4 };
    const tuned = await tune(shapes, (policy) => openWasm({ policy }), options);
    expect(tuned.map(({ n, activationBits }) => [n, activationBits])).toEqual([
      [48, 8],
      [48, 4],
    ]);
    const names = ["bitwise", "padding", "padding-decoded", "table"];
    expect(Object.keys(tuned[0].points[0].seconds).sort()).toEqual(names);
    for (const { points } of tuned) {
      expect(points.map(({ m }) => m)).toEqual([1, 2, 3]);
      for (const { seconds, choice } of points) expect(seconds[choice]).toBeGreaterThan(0);
    }
    parsePolicyMap(JSON.stringify({ version: 1, ...here, shapes: tuned }), "tuned");
  });
});
