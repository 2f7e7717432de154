/**
 * Measures every strategy on a model's shapes: the offline phase of ADAngel's dispatcher (section 4.4).
 *
 * @module
 */
import type { Program } from "../backends/backend.ts";
import type { LinearHandle } from "../backends/operation.ts";
import type { WasmBackend } from "../backends/wasm/backend.ts";
import { median } from "../median.ts";
import type { PackedLinear } from "../ops/linear/packed.ts";
import { fieldLayouts } from "../ops/linear/plan.ts";
import { LARGEST_M, type LinearPolicy, type StrategyName } from "../ops/linear/policy.ts";
import { strategies } from "../ops/linear/strategies.ts";
import { fillGaussian } from "../quantizers/random.ts";
import { randomMatrix } from "../quantizers/randomMatrix.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import type { PolicyPoint, PolicyShape } from "./policyFile.ts";

/** A weight matrix as the tuner sees it. */
export interface TunedShape {
  readonly n: number;
  readonly k: number;
  readonly scheme: string;
}

export interface TuneOptions {
  readonly activationBits: readonly (4 | 8)[];
  /** Where M is measured first. Default from 1 to 2048, denser below. */
  readonly tokens?: readonly number[];
  /** Seconds that one strategy is measured at one M, about. Default 0.04. */
  readonly seconds?: number;
  /** Measures all layouts at every point, for comparisons; the choice is still among the strategies of one. */
  readonly everyLayout?: boolean;
  readonly onProgress?: (done: number, total: number, shape: TunedShape) => void;
  readonly signal?: AbortSignal;
  /** Lets others run between points; default not. */
  readonly breathe?: () => Promise<unknown>;
}

const TOKENS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512, LARGEST_M];
/** Decoding streams weights from memory: copies in turn, until they exceed any cache. */
const COLD_BYTES = 64 << 20;
const MOST_COPIES = 512;
/** With more tokens than this arithmetic decides, and one copy does. */
const COLD_TOKENS = 4;
/** Measurements of a strategy at a point, each the fastest of a few runs: their median counts. */
const SAMPLES = 9;
const FEWEST_RUNS = 3;
/** A choice stays from point to point while it is as near to the best as this: noise alone changes none. */
const TOLERANCE = 1.03;
/** Points are added between two that differ in their choice until their ratio is below this. */
const DENSE_RATIO = 1.34;
/** Another layout than the usual one has to be this much faster for a single token. */
const LAYOUT_GAIN = 0.97;

/** Opens a backend whose products follow a policy. */
export type OpenBackend = (policy: LinearPolicy) => Promise<WasmBackend>;

/** Times every strategy of every layout of the shapes; shapes that have no choice (floats) are left out. */
export async function tune(
  shapes: readonly TunedShape[],
  open: OpenBackend,
  options: TuneOptions,
): Promise<PolicyShape[]> {
  let forced: StrategyName | undefined;
  const backend = await open(() => forced);
  const force = (name: StrategyName) => {
    forced = name;
  };
  const results: PolicyShape[] = [];
  const chosen = shapes.filter(({ scheme }) => parseScheme(scheme).family !== "float");
  try {
    for (const [i, shape] of chosen.entries()) {
      // There is one copy of the weights: the first precision decides its layout for all.
      let layout: Layout | undefined;
      for (const bits of options.activationBits) {
        options.onProgress?.(i, chosen.length, shape);
        const tuner = new ShapeTuner(backend, shape, bits, force, options);
        const measured = await tuner.measure(layout);
        layout = measured.layout;
        const weightBits = parseScheme(shape.scheme).bits;
        results.push({ ...shape, weightBits, activationBits: bits, points: measured.points });
      }
    }
  } finally {
    backend.dispose();
  }
  return results;
}

/** By a strategy that has it: the usual one, or bit planes. */
type Layout = "padding" | "table";

class ShapeTuner {
  readonly #backend: WasmBackend;
  readonly #shape: TunedShape;
  readonly #bits: 4 | 8;
  readonly #force: (name: StrategyName) => void;
  readonly #options: TuneOptions;

  constructor(
    backend: WasmBackend,
    shape: TunedShape,
    bits: 4 | 8,
    force: (name: StrategyName) => void,
    options: TuneOptions,
  ) {
    this.#backend = backend;
    this.#shape = shape;
    this.#bits = bits;
    this.#force = force;
    this.#options = options;
  }

  /** Points of one layout: `fixed`, or the one that a single token likes best; its point has the other's times too. */
  async measure(fixed?: Layout): Promise<{ points: PolicyPoint[]; layout: Layout }> {
    const planes = fieldLayouts(parseScheme(this.#shape.scheme)).includes("planes");
    const layouts: Layout[] = fixed ? [fixed] : planes ? ["padding", "table"] : ["padding"];
    const copies: Copies[] = [];
    try {
      for (const layout of layouts) copies.push(await this.#copies(layout));
      const first = await this.#point(1, copies);
      const best = ({ names }: Copies) => Math.min(...names.map((name) => secondsOf(first, name)));
      const at = copies.length > 1 && best(copies[1]) < LAYOUT_GAIN * best(copies[0]) ? 1 : 0;
      const loaded = copies[at];
      // A choice must be possible in the layout that is in memory.
      const shown = this.#options.everyLayout ? copies : [loaded];
      const points = [first];
      for (const m of this.#options.tokens ?? TOKENS) if (m > 1) points.push(await this.#point(m, shown));
      return { points: await this.#densify(points, shown, loaded.names), layout: layouts[at] };
    } finally {
      for (const { handles } of copies) for (const handle of handles) this.#backend.freeLinear(handle);
    }
  }

  async #densify(
    points: readonly PolicyPoint[],
    shown: readonly Copies[],
    names: readonly StrategyName[],
  ): Promise<PolicyPoint[]> {
    let dense = steady(points, names);
    for (let i = 0; i + 1 < dense.length; ) {
      const [a, b] = [dense[i], dense[i + 1]];
      const middle = Math.round(Math.sqrt(a.m * b.m));
      const settled = a.choice === b.choice || b.m / a.m < DENSE_RATIO || middle === a.m || middle === b.m;
      if (settled) i++;
      else dense = steady(dense.toSpliced(i + 1, 0, await this.#point(middle, shown)), names);
    }
    return dense;
  }

  /** The same weights in the layout of a strategy, often enough that no cache holds them all. */
  async #copies(layoutOf: StrategyName): Promise<Copies> {
    this.#force(layoutOf);
    const { scheme, n, k } = this.#shape;
    const weights = randomMatrix(scheme, n, k);
    const handles: LinearHandle[] = [await this.#backend.loadLinear(weights)];
    const count = Math.min(MOST_COPIES, Math.ceil(COLD_BYTES / handles[0].byteLength));
    while (handles.length < count) handles.push(await this.#backend.loadLinear(weights));
    const packed = handles[0] as PackedLinear;
    const names = strategies
      .filter(({ integers, declines }) => integers && declines(packed) === undefined)
      .map(({ name }) => name);
    return { handles, names };
  }

  /** Medians of all strategies, taken in turn so that drift of the machine hits all alike. */
  async #point(m: number, layouts: readonly Copies[]): Promise<PolicyPoint> {
    const backend = this.#backend;
    const { n, k } = this.#shape;
    const [input, out] = [backend.reserve(m * k * 4), backend.reserve(m * n * 4)];
    backend.upload(input, fillGaussian(new Float32Array(m * k), 3));
    const activations = this.#bits === 8 ? "int8" : "int4";
    const record = (handle: LinearHandle) =>
      backend.record([
        {
          ...{ op: "linear", input, weights: [handle], biases: [undefined], outputs: [out] },
          ...{ rows: m, activations },
        },
      ]);
    const contestants = layouts.flatMap(({ handles, names }, i) =>
      // What both layouts have is measured in the usual one.
      names
        .filter((name) => i === 0 || !layouts[0].names.includes(name))
        .map((name) => {
          this.#force(name);
          return { name, programs: handles.slice(0, m <= COLD_TOKENS ? undefined : 1).map(record) };
        }),
    );
    const measured = await this.#race(contestants);
    for (const { programs } of contestants) for (const program of programs) program.free();
    for (const slot of [input, out]) backend.free(slot);
    const names = layouts.flatMap((layout) => layout.names);
    return withChoice({ m, seconds: Object.fromEntries(measured), choice: names[0] }, names);
  }

  async #race(
    contestants: readonly { readonly name: StrategyName; readonly programs: readonly Program[] }[],
  ): Promise<[StrategyName, number][]> {
    const { seconds = 0.04, breathe, signal } = this.#options;
    let next = 0;
    const run = (programs: readonly Program[]) => {
      const started = performance.now();
      this.#backend.runNow(programs[next++ % programs.length]);
      return (performance.now() - started) / 1000;
    };
    // The fastest of a few: what else runs on the machine only ever adds time.
    const sample = (programs: readonly Program[], repeats: number) => {
      let best = run(programs);
      for (let i = 1; i < repeats; i++) best = Math.min(best, run(programs));
      return best;
    };
    // The first run warms up; the second says how many make a sample.
    const repeats = contestants.map(({ programs }) => {
      sample(programs, 1);
      return Math.max(FEWEST_RUNS, Math.round(seconds / SAMPLES / sample(programs, 1)));
    });
    const times = contestants.map((): number[] => []);
    for (let round = 0; round < SAMPLES; round++) {
      for (const [i, { programs }] of contestants.entries()) times[i].push(sample(programs, repeats[i]));
      signal?.throwIfAborted();
      await breathe?.();
    }
    return contestants.map(({ name }, i) => [name, median(times[i])]);
  }
}

interface Copies {
  readonly handles: readonly LinearHandle[];
  /** The strategies that multiply them. */
  readonly names: readonly StrategyName[];
}

function withChoice(point: PolicyPoint, names: readonly StrategyName[]): PolicyPoint {
  const choice = names.reduce((best, name) =>
    secondsOf(point, name) < secondsOf(point, best) ? name : best,
  );
  return { ...point, choice };
}

/** The points with the best choice of `names` or, wherever that is nearly as good, the choice before them. */
function steady(points: readonly PolicyPoint[], names: readonly StrategyName[]): PolicyPoint[] {
  let last: StrategyName | undefined;
  return points.map((point) => {
    const best = withChoice(point, names).choice;
    if (last === undefined || secondsOf(point, last) > TOLERANCE * secondsOf(point, best)) last = best;
    return { ...point, choice: last };
  });
}

function secondsOf({ seconds }: PolicyPoint, name: StrategyName): number {
  return seconds[name] ?? Number.POSITIVE_INFINITY;
}
