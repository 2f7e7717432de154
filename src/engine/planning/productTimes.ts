/**
 * How long products of a model's shapes take on a backend, scheme by scheme.
 *
 * @module
 */
import { type Backend, type Program, SLICE_ROWS } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import { groupBy } from "../../groupBy.ts";
import { randomFiller, randomMatrix } from "../../quantizers/randomMatrix.ts";
import type { ProductTime } from "./costs.ts";

/** Rows and columns of a weight. */
export interface Shape {
  readonly rows: number;
  readonly columns: number;
}

export interface TimingOptions {
  readonly shapes: readonly Shape[];
  readonly schemes: readonly string[];
  /** Tokens in a step. */
  readonly batch: number;
  /** Bytes of the model's weights: what a step has read when it comes back to the same product. */
  readonly modelBytes: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Every product is timed so often, in turn with all others; the fastest counts, for other programs only slow them. */
const ROUNDS = 7;
/** Weights that lie side by side for one measurement: copies of small shapes, part of a large one. */
const WEIGHTS = 2 ** 21;
/** A model larger than this comes from memory, not from a cache. */
const MOST_BROOM_BYTES = 2 ** 26;

interface Timed extends Shape {
  readonly scheme: string;
  readonly program: Program;
  /** Products in the program. */
  readonly count: number;
  /** Rows of the weight that are multiplied. */
  readonly measuredRows: number;
  readonly samples: number[];
}

/**
 * Seconds of each product beyond those of a product of 16 rows. Weights come from where a step finds them: each sample
 * follows a reading of as many other bytes as the model has. Schemes that the backend has no kernel for are left out.
 */
export async function timeProducts(backend: Backend, options: TimingOptions): Promise<ProductTime[]> {
  const { shapes, schemes, batch, signal, onProgress } = options;
  const fill = randomFiller();
  const programs: Program[] = [];
  const handles: LinearHandle[] = [];
  const slots: Slot[] = [];
  const keep = <T>(list: T[], item: T): T => {
    list.push(item);
    return item;
  };
  try {
    const widest = Math.max(...shapes.map(({ columns }) => columns));
    const tallest = Math.max(...shapes.map(({ rows, columns }) => measuredRows(rows, columns)));
    const input = keep(slots, backend.allocate(batch * widest * 4));
    const output = keep(slots, backend.reserve(batch * tallest * 4));
    const timed: Timed[] = [];
    const byColumns = groupBy(shapes, ({ columns }) => columns);
    for (const scheme of schemes) {
      for (const [columns, list] of byColumns) {
        const most = Math.max(...list.map(({ rows }) => measuredRows(rows, columns)));
        const whole = await backend.loadLinear(
          randomMatrix(scheme, Math.max(most, matrixRows(columns)), columns, fill),
        );
        handles.push(whole);
        for (const rows of new Set([SLICE_ROWS, ...list.map((shape) => shape.rows)])) {
          const measured = Math.min(whole.rows, measuredRows(rows, columns));
          const step = Math.ceil(measured / SLICE_ROWS) * SLICE_ROWS;
          const count = Math.max(1, Math.floor(whole.rows / step));
          const operations = Array.from({ length: count }, (_, i) => ({
            op: "linear" as const,
            input,
            weights: [backend.sliceLinear(whole, i * step, Math.min(measured, whole.rows - i * step))],
            biases: [undefined],
            outputs: [output],
            rows: batch,
            activations: "int8" as const,
          }));
          const program = keep(programs, backend.record(operations));
          timed.push({ scheme, columns, rows, measuredRows: measured, count, program, samples: [] });
        }
      }
    }
    const broom = await makeBroom(backend, Math.min(options.modelBytes, MOST_BROOM_BYTES));
    handles.push(broom.weights);
    slots.push(broom.output);
    programs.push(broom.program);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { program, samples }] of timed.entries()) {
        await backend.run(broom.program);
        const started = performance.now();
        await backend.run(program);
        samples.push((performance.now() - started) / 1000);
        if (i % 32 === 0) {
          onProgress?.(round * timed.length + i, ROUNDS * timed.length);
          await new Promise((resolve) => setTimeout(resolve));
          signal?.throwIfAborted();
        }
      }
    }
    return productTimes(timed, shapes);
  } finally {
    for (const program of programs) program.free();
    for (const handle of handles) backend.freeLinear(handle);
    for (const slot of slots) backend.free(slot);
  }
}

function productTimes(timed: readonly Timed[], shapes: readonly Shape[]): ProductTime[] {
  const seconds = ({ samples, count }: Timed) => Math.min(...samples) / count;
  const least = new Map(
    timed.flatMap((each) =>
      each.rows === SLICE_ROWS ? [[`${each.scheme} ${each.columns}`, seconds(each)] as const] : [],
    ),
  );
  return shapes.flatMap(({ rows, columns }) =>
    timed
      .filter((each) => each.rows === rows && each.columns === columns)
      .map((each) => {
        const beyond = Math.max(0, seconds(each) - least.get(`${each.scheme} ${columns}`)!);
        return { rows, columns, scheme: each.scheme, seconds: (beyond * rows) / each.measuredRows };
      }),
  );
}

/** Rows of the matrix whose slices are timed. */
function matrixRows(columns: number): number {
  return Math.max(1, Math.floor(WEIGHTS / columns / SLICE_ROWS)) * SLICE_ROWS;
}

/** Of very large shapes a part is timed. */
function measuredRows(rows: number, columns: number): number {
  return Math.min(rows, 2 * matrixRows(columns));
}

/** A program that reads so many bytes, so that what was read before has left the caches that the model would not fit. */
async function makeBroom(backend: Backend, byteLength: number) {
  const columns = 4096;
  const rows = Math.max(SLICE_ROWS, Math.ceil(byteLength / (4 * columns)));
  const readRows = async (start: number, end: number) => new Float32Array((end - start) * columns);
  const weights = await backend.loadLinear({ scheme: "f32", rows, columns, readRows });
  const output = backend.allocate((rows + columns) * 4);
  const program = backend.record([
    {
      op: "linear",
      input: { place: output.place + rows * 4, byteLength: columns * 4 },
      weights: [weights],
      biases: [undefined],
      outputs: [output],
      rows: 1,
      activations: "float",
    },
  ]);
  return { weights, output, program };
}
