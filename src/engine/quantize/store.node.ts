import { createHash, type Hash } from "node:crypto";
import type { Tensor } from "../../checkpoint/checkpoint.ts";
import { fromFloat32 } from "../../checkpoint/dtype.ts";
import { quantizedNames } from "../../checkpoint/quantization.ts";
import type { SafetensorsWriter } from "../../checkpoint/safetensors/writer.node.ts";
import { rowLayout } from "../../checkpoint/shape.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { QuantizedRows } from "./job.ts";
import { digest, type Journal } from "./journal.node.ts";
import type { TensorPlan } from "./plan.ts";

/** `done` weights, of which an earlier run did `resumed`. */
type Report = (
  phase: "round" | "sample" | "gradients" | "observe" | "advance",
  tensor: string,
  done: number,
  resumed: number,
) => void;

/** Bytes within a tensor of the file. */
interface Place {
  readonly name: string;
  readonly at: number;
  readonly byteLength: number;
}

/** Where quantized tensors go: into the file, and when complete into the journal. Rows of a tensor come in order. */
export class TensorStore {
  readonly #writer: SafetensorsWriter;
  readonly #journal: Journal;
  readonly #plan: TensorPlan;
  readonly #report: Report;
  /** Hashes of what the tensors at work have so far: of codes and scales, apart. */
  readonly #open = new Map<string, { codes: Hash; scales: Hash }>();
  #done = 0;
  #resumed = 0;

  constructor(writer: SafetensorsWriter, journal: Journal, plan: TensorPlan, report: Report) {
    this.#writer = writer;
    this.#journal = journal;
    this.#plan = plan;
    this.#report = report;
  }

  /** Takes over a tensor as an earlier run stored it, if its bytes are whole. */
  async resumed({ name, shape }: Pick<Tensor, "name" | "shape">): Promise<boolean> {
    if (this.#plan.has(name)) {
      const whole = (await this.finished(name)) !== undefined;
      if (whole) this.accept(name);
      return whole;
    }
    const hash = this.#journal.finished.get(name);
    if (hash === undefined || hash !== digest(await this.#writer.read(name))) return false;
    this.#writer.accept(name);
    const { rows, rowSize } = rowLayout(shape);
    this.#takeOver(name, rows * rowSize);
    return true;
  }

  /** Takes over a weight that is {@link finished}. */
  accept(name: string): void {
    const { codes, scales } = this.#places(name);
    this.#writer.accept(codes.name, codes.byteLength);
    this.#writer.accept(scales.name, scales.byteLength);
    const [rows, columns] = this.#plan.get(name)!.shape;
    this.#takeOver(name, rows * columns);
  }

  /** What an earlier run stored of a weight, if its bytes are whole. */
  async finished(name: string): Promise<QuantizedRows | undefined> {
    const hash = this.#journal.finished.get(name);
    if (hash === undefined) return undefined;
    const rows = await this.read(name);
    if (hash !== digest(digest(rows.codes), digest(fromFloat32("F32", rows.scales)))) return undefined;
    return rows;
  }

  /** Codes and scales of a weight as they are in the file. */
  async read(name: string): Promise<QuantizedRows> {
    const places = this.#places(name);
    const read = ({ name, at, byteLength }: Place) => this.#writer.read(name, at, byteLength);
    const codes = await read(places.codes);
    const scales = await read(places.scales);
    return { codes, scales: new Float32Array(scales.buffer) };
  }

  /** Codes and scales of rows from `row` on. */
  async store(name: string, row: number, { codes, scales }: QuantizedRows): Promise<void> {
    const [rows, columns] = this.#plan.get(name)!.shape;
    const places = this.#places(name, row);
    const scaleBytes = fromFloat32("F32", scales);
    await this.#writer.write(places.codes.name, codes, places.codes.at);
    await this.#writer.write(places.scales.name, scaleBytes, places.scales.at);
    const hashes = this.#hashes(name);
    hashes.codes.update(codes);
    hashes.scales.update(scaleBytes);
    if (row + scales.length === rows) {
      await this.#journal.add(name, digest(hashes.codes.digest("hex"), hashes.scales.digest("hex")));
    }
    this.progress("round", name, scales.length * columns);
  }

  /** Bytes of rows that stay as they are, from `row` on. */
  async copy({ name, shape }: Pick<Tensor, "name" | "shape">, row: number, bytes: Uint8Array): Promise<void> {
    const { rows, rowSize } = rowLayout(shape);
    await this.#writer.write(name, bytes, row * rowSize * 4);
    const hashes = this.#hashes(name);
    hashes.codes.update(bytes);
    const count = bytes.length / 4;
    if (row * rowSize + count === rows * rowSize) await this.#journal.add(name, hashes.codes.digest("hex"));
    this.progress("round", name, count);
  }

  /** Puts other scales in the place of a weight's. The journal keeps those that it was quantized with. */
  async replaceScales(name: string, scales: Float32Array): Promise<void> {
    const place = this.#places(name).scales;
    await this.#writer.replace(place.name, fromFloat32("F32", scales), place.at);
  }

  /** Puts other values in the place of a tensor that is not quantized. */
  async replaceValues(name: string, values: Float32Array): Promise<void> {
    await this.#writer.replace(name, fromFloat32("F32", values));
  }

  progress(phase: Parameters<Report>[0], tensor: string, weights = 0): void {
    this.#done += weights;
    this.#report(phase, tensor, this.#done, this.#resumed);
  }

  #takeOver(tensor: string, weights: number): void {
    this.#resumed += weights;
    this.progress("round", tensor, weights);
  }

  suspend(): Promise<void> {
    return this.#writer.suspend();
  }

  abort(): Promise<void> {
    return this.#writer.abort();
  }

  /** Where codes and scales of a weight's rows from `row` on lie in the file. */
  #places(name: string, row = 0): { codes: Place; scales: Place } {
    const { scheme, shape, place } = this.#plan.get(name)!;
    const [rows, columns] = shape;
    const names = quantizedNames(place.name);
    const quantizer = quantizerFor(parseScheme(scheme));
    const bytes = (count: number) => quantizer.codesByteLength(count, columns);
    const [first, last] = [place.firstRow + row, place.firstRow + rows];
    return {
      codes: { name: names.codes, at: bytes(first), byteLength: bytes(last) - bytes(first) },
      scales: { name: names.scales, at: first * 4, byteLength: (last - first) * 4 },
    };
  }

  #hashes(name: string): { codes: Hash; scales: Hash } {
    const hashes = this.#open.get(name) ?? { codes: createHash("sha256"), scales: createHash("sha256") };
    this.#open.set(name, hashes);
    return hashes;
  }
}
