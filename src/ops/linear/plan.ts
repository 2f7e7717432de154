/**
 * How the tiles of fields (fieldTiles.as.ts) of a scheme are decoded: constants of the kernels, as bytes.
 *
 * @module
 */
import type { WasmDevice } from "../../backends/wasm/backend.ts";
import { codeTable } from "../../quantizers/codeTable.ts";
import type { Scheme } from "../../quantizers/scheme.ts";
import { swizzleSum, tableCode } from "../../quantizers/tcq/code.ts";
import { stepBits, tileLayout } from "../../quantizers/tcq/trellis.ts";
import { vqCodebook, vqSteps } from "../../quantizers/vq.ts";

/** As in plan.as.ts. */
const PART_BYTES = 256;
const offsets = {
  ...{ first: 0, rest: 16, powers: 32, wrap: 64, keep: 80, mask: 96, factor: 112 },
  ...{ low: 128, high: 144, bits: 160, decoder: 164, table: 168, spread: 172, fold: 176, unit: 180 },
  ...{ offset: 184, nibbles: 192, one: 208, doubled: 224, weights: 240 },
} as const;
const decoders = {
  swizzleSum: 0,
  trellisTable: 1,
  uniform: 2,
  widePairs: 3,
  pairs: 4,
  nibblePairs: 5,
  crumbs: 6,
  threeBits: 7,
  bitPlanes: 8,
} as const;

/** Writes the constants of one rate. */
class Part {
  readonly bytes = new Uint8Array(PART_BYTES);
  readonly #view = new DataView(this.bytes.buffer);

  int(place: keyof typeof offsets, value: number): this {
    this.#view.setInt32(offsets[place], value, true);
    return this;
  }

  float(place: keyof typeof offsets, value: number): this {
    this.#view.setFloat32(offsets[place], value, true);
    return this;
  }

  /** 16 bytes. */
  vector(place: keyof typeof offsets, values: ArrayLike<number>): this {
    this.bytes.set(values, offsets[place]);
    return this;
  }

  /** The same 16 bits in all lanes. */
  words(place: keyof typeof offsets, value: number): this {
    for (let i = 0; i < 8; i++) this.#view.setUint16(offsets[place] + 2 * i, value, true);
    return this;
  }

  /** What finds eight successive fields of `k` bits in 16 bytes, and joins a circular stream's end and start. */
  fields(k: number): this {
    this.int("bits", k);
    for (let lane = 0; lane < 8; lane++) {
      const [place, shift] = [(lane * k) >> 3, (lane * k) & 7];
      const byte = (i: number) => (i < 16 ? i : 128);
      this.bytes.set([byte(place), 128], offsets.first + 2 * lane);
      this.bytes.set([byte(place + 1), byte(place + 2)], offsets.rest + 2 * lane);
      this.#view.setUint16(offsets.powers + 2 * lane, 1 << (8 - shift), true);
    }
    for (let byte = 0; byte < 16; byte++) {
      this.bytes[offsets.keep + byte] = byte < k ? 255 : 0;
      this.bytes[offsets.wrap + byte] = byte === k || byte === k + 1 ? byte - k : 128;
    }
    return this;
  }
}

/** Where fields of codes lie: as in the stream of a trellis, for products straight from the codes, or in bit planes. */
export type FieldLayout = "stream" | "direct" | "planes";

/** The layouts that a scheme's codes may have, the usual one first. */
export function fieldLayouts(scheme: Scheme): FieldLayout[] {
  const { family, bits } = scheme;
  const direct = (family === "vq" && bits === 2) || ((family === "nuq" || family === "uniform") && bits <= 3);
  return [direct ? "direct" : "stream", ...(bitWeights(scheme) ? (["planes"] as const) : [])];
}

/**
 * What each bit of a code adds to the lowest level, lowest bit first, in the units of {@link fieldPlan}; undefined
 * where levels are no such sums, or no product by planes could win.
 */
function bitWeights(scheme: Scheme): number[] | undefined {
  const { family, bits } = scheme;
  if (!(family === "uniform" && bits <= 4) && !(family === "nuq" && bits === 2)) return undefined;
  const { values } = codeTable(scheme)!;
  return Array.from({ length: bits }, (_, bit) => values[1 << bit] - values[0]);
}

/** Bits of a field, for two columns: of half-TCQ the lower rate's. */
export function fieldBits({ family, bits }: Scheme): number {
  return family === "tcq" || family === "tcq-s" ? stepBits(tileLayout(bits, 0).lowRate) : 2 * bits;
}

/** The plan of a scheme in the device's memory. */
export function fieldPlan(scheme: Scheme, layout: FieldLayout, device: WasmDevice): { place: number } {
  return device.shared(`plan ${scheme.name} ${layout}`, () => {
    const bytes = new Uint8Array(2 * PART_BYTES);
    parts(scheme, layout, device).forEach((part, i) => {
      bytes.set(part.bytes, i * PART_BYTES);
    });
    return bytes;
  });
}

function parts(scheme: Scheme, layout: FieldLayout, device: WasmDevice): readonly [Part, Part] {
  const { family, bits } = scheme;
  if (family === "tcq" || family === "tcq-s") {
    const { lowRate, highRate } = tileLayout(bits, 0);
    const make = family === "tcq" ? (rate: number) => trellisTable(rate, device) : trellisSums;
    return [make(lowRate), make(highRate)];
  }
  const part = onePart(scheme, layout, device);
  return [part, part];
}

function onePart(scheme: Scheme, layout: FieldLayout, device: WasmDevice): Part {
  const { family, bits } = scheme;
  if (layout === "planes") return bitPlanes(scheme);
  if (layout === "direct") return family === "vq" ? nibblePairs(bits) : smallLevels(scheme);
  if (family === "uniform") return uniform(bits);
  return family === "vq" && bits in vqSteps ? bytePairs(bits, device) : widePairs(scheme, device);
}

function trellisSums(rate: number): Part {
  const { spread, factor, fold, low, high, unit } = swizzleSum(rate);
  return new Part()
    .fields(stepBits(rate))
    .int("decoder", decoders.swizzleSum)
    .int("spread", spread)
    .int("fold", fold)
    .words("factor", factor)
    .words("nibbles", 0x0f0f)
    .vector(
      "low",
      low.map((value) => value + 64),
    )
    .vector("high", high)
    .float("unit", unit)
    .float("offset", 64);
}

function trellisTable(rate: number, device: WasmDevice): Part {
  const { tableBits, table, unit } = tableCode(rate);
  const entries = 1 << tableBits;
  // Bit 15 of the hash, the sign, follows the bits of the entry.
  const { place } = device.shared(`trellis table ${rate}`, () =>
    Uint8Array.from({ length: 4 * entries }, (_, i) => {
      const value = table[2 * ((i >> 1) % entries) + (i & 1)];
      return 64 + (i >= 2 * entries && (i & 1) === 0 ? -value : value);
    }),
  );
  return new Part()
    .fields(stepBits(rate))
    .int("decoder", decoders.trellisTable)
    .int("table", place)
    .int("spread", 14 - tableBits)
    .words("mask", 4 * entries - 2)
    .words("one", 1)
    .float("unit", unit)
    .float("offset", 64);
}

function uniform(bits: number): Part {
  const mask = 2 ** bits - 1;
  return new Part()
    .fields(2 * bits)
    .int("decoder", decoders.uniform)
    .words("factor", 1 << (8 - bits))
    .words("mask", mask)
    .words("high", mask << 8)
    .float("unit", 1)
    .float("offset", mask / 2);
}

/** Points whose coordinates are integers of 7 bits with a sign, in steps. */
function smallPoints(bits: number): Int8Array {
  return Int8Array.from(vqCodebook(bits), (value) => Math.round(value / vqSteps[bits]));
}

/** A table of pairs of bytes. */
function bytePairs(bits: number, device: WasmDevice): Part {
  const { place } = device.shared(`byte pairs ${bits}`, () => smallPoints(bits).map((value) => value + 64));
  return new Part()
    .fields(2 * bits)
    .int("decoder", decoders.pairs)
    .int("table", place)
    .words("mask", (2 ** (2 * bits) - 1) * 2)
    .float("unit", vqSteps[bits])
    .float("offset", 64);
}

/** Two shuffles of 16 bytes. */
function nibblePairs(bits: number): Part {
  const points = smallPoints(bits).map((value) => value + 64);
  return new Part()
    .int("bits", 4)
    .int("decoder", decoders.nibblePairs)
    .vector(
      "low",
      points.filter((_, i) => i % 2 === 0),
    )
    .vector(
      "high",
      points.filter((_, i) => i % 2 === 1),
    )
    .words("nibbles", 0x0f0f)
    .float("unit", vqSteps[bits])
    .float("offset", 64);
}

/** One shuffle of up to 8 levels. The uniform ones are halves: they are doubled. */
function smallLevels(scheme: Scheme): Part {
  const step = scheme.family === "uniform" ? 0.5 : 1;
  const { bits, values } = codeTable(scheme)!;
  const levels = values.map((value) => value / step + 64);
  const part = new Part()
    .int("bits", 2 * bits)
    .float("unit", step)
    .float("offset", 64);
  if (bits === 2) return part.int("decoder", decoders.crumbs).vector("low", levels).words("mask", 0x0303);
  return part
    .int("decoder", decoders.threeBits)
    .vector("low", [...levels, ...levels])
    .vector(
      "doubled",
      [...levels].flatMap((level) => [level, level]),
    )
    .words("nibbles", 0x0f0f)
    .words("high", 0x8888);
}

function bitPlanes(scheme: Scheme): Part {
  const weights = Int16Array.from(bitWeights(scheme)!);
  return new Part()
    .int("bits", 2 * scheme.bits)
    .int("decoder", decoders.bitPlanes)
    .vector("weights", new Uint8Array(weights.buffer))
    .float("unit", 1)
    .float("offset", -codeTable(scheme)!.values[0]);
}

/** What the finer codebooks' coordinates are multiples of. */
const FINE_UNIT = 2 ** -12;

/** A table of pairs of 16-bit integers. */
function widePairs(scheme: Scheme, device: WasmDevice): Part {
  const { bits, dimension, values } = codeTable(scheme)!;
  const { place } = device.shared(`pairs ${scheme.name}`, () => {
    const count = dimension === 2 ? 1 << bits : 1 << (2 * bits);
    return Int16Array.from({ length: 2 * count }, (_, i) => {
      const code = dimension === 2 ? i : ((i >> 1) >> ((i & 1) * bits)) & ((1 << bits) - 1);
      return Math.round(values[code] / FINE_UNIT);
    });
  });
  return new Part()
    .fields(2 * scheme.bits)
    .int("decoder", decoders.widePairs)
    .int("table", place)
    .words("mask", 2 ** (2 * scheme.bits) - 1)
    .float("unit", FINE_UNIT);
}
