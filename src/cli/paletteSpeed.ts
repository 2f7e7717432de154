import { availableParallelism } from "node:os";
import type { Backend, QuantizedWeights } from "../backends/backend.ts";
import type { LinearHandle } from "../backends/operation.ts";
import { spawnNodeWorker } from "../backends/wasm/workers.node.ts";
import { UnsupportedError } from "../errors.ts";
import { openWasm } from "../ops/wasm.ts";
import { randomMatrix } from "../quantizers/randomMatrix.ts";
import type { Scheme } from "../quantizers/scheme.ts";

/** Of a 7B model's attention. */
const SIZE = 4096;
const RUNS = 7;
/** Least time of one run: a product of this size takes about a millisecond. */
const RUN_MS = 30;

/** Measures how fast the wasm backend multiplies a vector with a matrix of each scheme. */
export class SpeedMeter {
  readonly #backend: Backend;

  private constructor(backend: Backend) {
    this.#backend = backend;
  }

  static async open(threads = availableParallelism()): Promise<SpeedMeter> {
    return new SpeedMeter(await openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true }));
  }

  /** Weights per second in the fastest of several runs, for other programs only slow them; null where the backend has no kernel for the scheme. */
  async weightsPerSecond(scheme: Scheme): Promise<number | null> {
    const backend = this.#backend;
    const weights = await this.#load(randomMatrix(scheme.name, SIZE, SIZE));
    if (weights === undefined) return null;
    const input = backend.allocate(SIZE * 4);
    const output = backend.allocate(SIZE * 4);
    backend.upload(
      input,
      Float32Array.from({ length: SIZE }, (_, i) => (i % 7) - 3),
    );
    const program = backend.record([
      {
        op: "linear",
        input,
        weights: [weights],
        biases: [undefined],
        outputs: [output],
        rows: 1,
        activations: "int8",
      },
    ]);
    const rates: number[] = [];
    try {
      for (let run = 0; run < RUNS; run++) {
        const started = performance.now();
        let [products, elapsed] = [0, 0];
        for (; elapsed < RUN_MS; elapsed = performance.now() - started) {
          await backend.run(program);
          products++;
        }
        rates.push((products * SIZE * SIZE * 1000) / elapsed);
      }
    } finally {
      program.free();
      backend.freeLinear(weights);
      backend.free(input);
      backend.free(output);
    }
    return Math.max(...rates);
  }

  async #load(weights: QuantizedWeights): Promise<LinearHandle | undefined> {
    try {
      return await this.#backend.loadLinear(weights);
    } catch (error) {
      if (error instanceof UnsupportedError) return undefined;
      throw error;
    }
  }

  dispose(): void {
    this.#backend.dispose();
  }
}
