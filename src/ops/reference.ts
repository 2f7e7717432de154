/**
 * The reference backend: the plainest TypeScript for every operation, the oracle of all others.
 * Quantized weights are decoded to float32 when loaded, and so are rounded activations.
 *
 * @module
 */

import { Arena } from "../backends/arena.ts";
import type { Backend, LinearWeights, Program, ResidualSource } from "../backends/backend.ts";
import type {
  Attention,
  Compensation,
  LinearHandle,
  Linear as LinearOperation,
  Operation,
  ResidualHandle,
  RopeStore,
} from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { Rotation } from "../quantizers/hadamard/rotation.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { decodeResidual, residualRowBytes } from "../quantizers/residual.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { add } from "./add/reference.ts";
import { decodeHeads, encodeHeads, keyValueHeadBytes } from "./attention/keyValue.ts";
import { attention } from "./attention/reference.ts";
import { compensate, selectChannels } from "./compensate/reference.ts";
import { embed } from "./embed/reference.ts";
import { gate } from "./gate/reference.ts";
import { gram } from "./gram/reference.ts";
import { roundActivations } from "./linear/activations.ts";
import { linear } from "./linear/reference.ts";
import { rmsNorm } from "./rmsNorm/reference.ts";
import { ropeStore } from "./ropeStore/reference.ts";
import { softcap } from "./softcap/reference.ts";
import { suppress } from "./suppress/reference.ts";

const LIMIT = 2 ** 32;

interface ReferenceResidual extends ResidualHandle {
  /** Of each member, float32 [rows, columns]. */
  readonly values: readonly Float32Array[];
}

interface ReferenceLinear extends LinearHandle {
  /** Decoded, in the basis of the codes. */
  readonly values: Float32Array;
  readonly rotation?: Rotation;
}

export class ReferenceBackend implements Backend {
  readonly name = "reference";
  readonly threads = 1;
  #memory = new ArrayBuffer(1 << 20, { maxByteLength: LIMIT });
  readonly #arena = new Arena(64, (end) => {
    if (end > LIMIT) return false;
    if (end > this.#memory.byteLength) this.#memory.resize(Math.min(LIMIT, end + (1 << 20)));
    return true;
  });

  get bytesAllocated(): number {
    return this.#arena.bytesAllocated;
  }

  allocate(byteLength: number): Slot {
    const slot = this.reserve(byteLength);
    new Uint8Array(this.#memory, slot.place, byteLength).fill(0);
    return slot;
  }

  reserve(byteLength: number): Slot {
    return { place: this.#arena.allocate(byteLength), byteLength };
  }

  free(slot: Slot): void {
    this.#arena.free(slot.place);
  }

  upload(slot: Slot, data: ArrayBufferView, byteOffset = 0): void {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    new Uint8Array(this.#memory, slot.place, slot.byteLength).set(bytes, byteOffset);
  }

  async readFloats(slot: Slot, count: number): Promise<Float32Array> {
    return this.#floats(slot, count).slice();
  }

  async loadLinear(weights: LinearWeights): Promise<LinearHandle> {
    const { scheme, rows, columns } = weights;
    if ("readRows" in weights) {
      const values = new Float32Array(rows * columns);
      const step = Math.max(1, Math.floor((1 << 20) / columns));
      for (let start = 0; start < rows; start += step) {
        values.set(await weights.readRows(start, Math.min(rows, start + step)), start * columns);
      }
      return { scheme, rows, columns, byteLength: values.byteLength, values } as ReferenceLinear;
    }
    const values = quantizerFor(parseScheme(scheme)).decode(weights);
    const { rotation } = weights;
    return { scheme, rows, columns, byteLength: values.byteLength, values, rotation } as ReferenceLinear;
  }

  freeLinear(): void {}

  async loadResidual({ bits, columns, stride, members, read }: ResidualSource): Promise<ResidualHandle> {
    const rows = new Uint8Array(columns * stride);
    await read(rows);
    const values = members.map(({ rows: size, offset, scales }) => {
      const part = new Uint8Array(columns * residualRowBytes(size, bits));
      const bytes = part.length / columns;
      for (let column = 0; column < columns; column++) {
        const at = column * stride + offset;
        part.set(rows.subarray(at, at + bytes), column * bytes);
      }
      return decodeResidual({ codes: part, scales }, size, columns, bits);
    });
    const byteLength = values.reduce((sum, each) => sum + each.byteLength, 0);
    const handle: ReferenceResidual = {
      ...{ bits, columns, values, byteLength },
      rows: members.map((member) => member.rows),
    };
    return handle;
  }

  freeResidual(): void {}

  sliceLinear(handle: LinearHandle, firstRow: number, rows: number): LinearHandle {
    const { values, columns, ...rest } = handle as ReferenceLinear;
    const part = values.subarray(firstRow * columns, (firstRow + rows) * columns);
    return { ...rest, rows, columns, byteLength: part.byteLength, values: part } as ReferenceLinear;
  }

  record(operations: readonly Operation[]): Program {
    const program = { operations: operations.length, list: [...operations], free() {} };
    return program;
  }

  async run(program: Program): Promise<void> {
    for (const operation of (program as Program & { list: Operation[] }).list) this.#execute(operation);
  }

  dispose(): void {}

  #floats(slot: Slot, count = Math.floor(slot.byteLength / 4)): Float32Array {
    return new Float32Array(this.#memory, slot.place, count);
  }

  #integers(slot: Slot): Int32Array {
    return new Int32Array(this.#memory, slot.place, slot.byteLength / 4);
  }

  #execute(op: Operation): void {
    const floats = (slot: Slot) => this.#floats(slot);
    switch (op.op) {
      case "embed": {
        const { values, columns, rotation } = op.table as ReferenceLinear;
        const out = this.#floats(op.out, op.rows * columns);
        embed(values, this.#integers(op.ids), out, op.rows, columns, op.scale);
        rotation?.inverse(out);
        break;
      }
      case "rmsNorm": {
        const other = op.add && floats(op.add);
        rmsNorm(floats(op.input), other, floats(op.weight), floats(op.out), op.rows, op.size, op.epsilon);
        break;
      }
      case "linear":
        this.#linear(op);
        break;
      case "ropeStore":
        this.#ropeStore(op);
        break;
      case "attention":
        this.#attention(op);
        break;
      case "gate":
        gate(floats(op.gate), floats(op.up), floats(op.out), op.rows * op.size, op.activation);
        break;
      case "add":
        add(floats(op.input), floats(op.add), op.rows * op.size);
        break;
      case "softcap":
        softcap(floats(op.input), op.rows * op.size, op.limit);
        break;
      case "gram":
        gram(floats(op.input), op.weights && floats(op.weights), floats(op.sums), op.rows, op.size);
        break;
      case "suppress":
        suppress(floats(op.input), floats(op.out), op.rows, op.size, op.channels);
    }
  }

  #ropeStore(op: RopeStore): void {
    const { rows, kvHeads, headSize, rope } = op;
    const { type, capacity } = op.cache;
    const [keys, values] = [0, 0].map(() => new Float32Array(rows * kvHeads * headSize));
    const places = {
      positions: Int32Array.from({ length: rows }, (_, i) => i),
      sequences: new Int32Array(rows),
    };
    const [q, k, v] = [op.q, op.k, op.v].map((slot) => this.#floats(slot));
    ropeStore(
      { q, k, v, rope: rope && this.#floats(rope), keys, values, ...places },
      { ...op, capacity: rows },
    );
    const [positions, sequences] = [this.#integers(op.positions), this.#integers(op.sequences)];
    const headBytes = keyValueHeadBytes(type, headSize);
    const store = (slot: Slot, floats: Float32Array, row: number, head: number) => {
      const at = (head * rows + row) * headSize;
      const place = (sequences[row] * kvHeads + head) * capacity + positions[row];
      this.upload(slot, encodeHeads(type, floats.subarray(at, at + headSize), headSize), place * headBytes);
    };
    for (let row = 0; row < rows; row++) {
      for (let head = 0; head < kvHeads; head++) {
        store(op.cache.keys, keys, row, head);
        store(op.cache.values, values, row, head);
      }
    }
  }

  #attention(op: Attention): void {
    const { rows, kvHeads, headSize } = op;
    const { type, capacity } = op.cache;
    const [positions, sequences] = [this.#integers(op.positions), this.#integers(op.sequences)];
    const used = (1 + Math.max(...sequences.subarray(0, rows))) * kvHeads * capacity;
    const byteLength = used * keyValueHeadBytes(type, headSize);
    const floats = ({ place }: Slot) =>
      decodeHeads(type, new Uint8Array(this.#memory, place, byteLength), headSize);
    const [keys, values] = [floats(op.cache.keys), floats(op.cache.values)];
    const [q, out] = [this.#floats(op.q), this.#floats(op.out)];
    attention({ q, keys, values, positions, sequences, out }, { ...op, capacity });
  }

  #linear({ input, weights, biases, outputs, rows, activations, compensation }: LinearOperation): void {
    weights.forEach((weight, i) => {
      const { values, columns, rotation, rows: n } = weight as ReferenceLinear;
      let x: Float32Array = this.#floats(input, rows * columns).slice();
      rotation?.apply(x);
      const rounds = activations !== "float" && parseScheme(weight.scheme).family !== "float";
      if (rounds) x = roundActivations(x, columns, activations);
      const bias = biases[i] && this.#floats(biases[i], n);
      linear(x, values, bias, this.#floats(outputs[i], rows * n), rows, n, columns);
    });
    if (compensation) this.#compensate(input, rows, compensation);
  }

  #compensate(input: Slot, rows: number, { residual, channels, selection, outputs }: Compensation): void {
    const { columns, values, rows: sizes } = residual as ReferenceResidual;
    const rule =
      selection.by === "energy" ? { ...selection, energies: this.#floats(selection.energies) } : selection;
    for (let row = 0; row < rows; row++) {
      const x = this.#floats(input, rows * columns).subarray(row * columns, (row + 1) * columns);
      const chosen = selectChannels(x, channels, rule);
      outputs.forEach((output, i) => {
        const y = this.#floats(output, rows * sizes[i]).subarray(row * sizes[i], (row + 1) * sizes[i]);
        compensate(x, chosen, values[i], y);
      });
    }
  }
}
