import type { FloatWeights, LinearWeights, QuantizedWeights } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import { type Slot, slotPart } from "../../backends/slot.ts";
import type { LinearLoader, WasmDevice } from "../../backends/wasm/backend.ts";
import { codeTable } from "../../quantizers/codeTable.ts";
import { parseScheme, type Scheme } from "../../quantizers/scheme.ts";
import { TILE_SIDE, tileLayout } from "../../quantizers/tcq/trellis.ts";
import { freeResidual, loadResidual } from "../compensate/load.ts";
import { wantsPlanes } from "./dispatch.ts";
import type { PackedLinear } from "./packed.ts";
import { type FieldLayout, fieldBits, fieldLayouts, fieldPlan } from "./plan.ts";
import type { LinearPolicy } from "./policy.ts";

/** Values of float weights read at a time. */
const CHUNK_VALUES = 1 << 20;

const TILE_ROWS = 16;
/** Codes are read in vectors, the last of which may reach past them. */
const SLACK = 16;

/**
 * Brings weights into memory, once, in the layout of the strategy that the policy has for one token: decoding is what
 * most time goes to, and every layout has strategies for more tokens.
 */
export function linearLoaderFor(policy?: LinearPolicy): LinearLoader {
  return {
    load: (weights, device) =>
      "readRows" in weights
        ? loadFloat(weights, device)
        : Promise.resolve(loadQuantized(weights, device, policy)),
    slice: (handle, firstRow, rows) => slice(handle as PackedLinear, firstRow, rows),
    free(handle, device) {
      const { data, scales, isSlice } = handle as PackedLinear;
      if (isSlice) return;
      device.free(data);
      if (scales) device.free(scales);
    },
    loadResidual,
    freeResidual,
  };
}

/** Every packing keeps the bytes of a tile's rows together. */
function slice(weight: PackedLinear, firstRow: number, rows: number): PackedLinear {
  if (firstRow % TILE_ROWS !== 0 || firstRow + rows > weight.rows) {
    throw new RangeError(`rows [${firstRow}, ${firstRow + rows}) are no slice of ${weight.rows} rows`);
  }
  const { data, scales, packing } = weight;
  const tiles = Math.ceil(weight.rows / TILE_ROWS);
  const slack = packing === "fieldTiles" ? SLACK : 0;
  const whole = packing === "float" || packing === "half" ? weight.rows / TILE_ROWS : tiles;
  const tileBytes = (data.byteLength - slack) / whole;
  const first = firstRow / TILE_ROWS;
  const part = packing === "float" || packing === "half" ? rows / TILE_ROWS : Math.ceil(rows / TILE_ROWS);
  return {
    ...weight,
    rows,
    isSlice: true,
    byteLength: (weight.byteLength * rows) / weight.rows,
    data: slotPart(data, first * tileBytes, part * tileBytes + slack),
    scales:
      scales &&
      slotPart(
        scales,
        firstRow * 4,
        Math.min(scales.byteLength - firstRow * 4, roundUp(rows, TILE_ROWS) * 4),
      ),
  };
}

async function loadFloat(weights: FloatWeights, device: WasmDevice): Promise<LinearHandle> {
  const { scheme, rows, columns, readRows } = weights;
  const size = scheme === "f32" ? 4 : 2;
  const data = device.reserve(rows * columns * size);
  const chunkRows = Math.max(1, Math.floor(CHUNK_VALUES / columns));
  const staging = scheme === "f16" ? device.reserve(Math.min(rows, chunkRows) * columns * 4) : undefined;
  for (let start = 0; start < rows; start += chunkRows) {
    const end = Math.min(rows, start + chunkRows);
    const place = data.place + start * columns * size;
    const floats = new Float32Array(device.memory.buffer, staging?.place ?? place, (end - start) * columns);
    const values = await readRows(start, end, floats);
    if (values.buffer !== floats.buffer) floats.set(values);
    if (staging) device.kernels.narrowToHalf(staging.place, place, floats.length);
  }
  if (staging) device.free(staging);
  const packing = scheme === "f32" ? "float" : "half";
  return packed({ scheme, rows, columns }, { packing, data, padded: columns });
}

function loadQuantized(
  weights: QuantizedWeights,
  device: WasmDevice,
  policy: LinearPolicy | undefined,
): LinearHandle {
  const { rows, columns, rotation } = weights;
  const scheme = parseScheme(weights.scheme);
  const { family, bits } = scheme;
  const scales = device.reserve(roundUp(rows, TILE_ROWS) * 4);
  device.bytes(scales).fill(0);
  new Float32Array(device.memory.buffer, scales.place, rows).set(weights.scales);
  const padded = roundUp(columns, TILE_SIDE);

  const planes = wantsPlanes(weights, device.simd, policy);
  if (!planes && bits === 4 && (family === "nuq" || family === "uniform")) {
    // The uniform levels are halves: twice the level, half the scale.
    const step = family === "nuq" ? 1 : 2;
    const floats = new Float32Array(device.memory.buffer, scales.place, rows);
    if (step === 2) floats.set(weights.scales.map((scale) => scale / 2));
    const codebook = device.shared(`nibbles ${weights.scheme}`, () => {
      const { values } = codeTable(scheme)!;
      return Uint8Array.from({ length: 16 }, (_, i) => (values[i] ?? 0) * step + 64);
    });
    const data = device.allocate(roundUp(rows, TILE_ROWS) * padded * 0.5);
    withStaged(weights.codes, device, (at) =>
      device.kernels.packNibbles(at, data.place, rows, columns, bits, padded),
    );
    return packed(weights, { packing: "nibbleTiles", data, scales, codebook, padded, rotation });
  }
  if (family === "uniform" && bits === 8) {
    const data = device.allocate(roundUp(rows, TILE_ROWS) * padded);
    withStaged(weights.codes, device, (at) =>
      device.kernels.packBytes(at, data.place, rows, columns, padded),
    );
    return packed(weights, { packing: "byteTiles", data, scales, padded, rotation });
  }
  const layout = planes ? "planes" : fieldLayouts(scheme)[0];
  const { data, lowTiles } = fieldTiles(weights, scheme, layout, device);
  const codebook = fieldPlan(scheme, layout, device);
  const packing = "fieldTiles";
  return packed(weights, { packing, layout, data, scales, codebook, padded, lowTiles, rotation });
}

/** Codes in tiles of fields, the trellis' canonical layout; others are repacked. */
function fieldTiles(
  { codes, rows, columns }: QuantizedWeights,
  scheme: Scheme,
  layout: FieldLayout,
  device: WasmDevice,
): { data: Slot; lowTiles: number } {
  const { family, bits } = scheme;
  const bands = Math.ceil(rows / TILE_ROWS);
  if (family === "tcq" || family === "tcq-s") {
    const { bandBytes, lowTiles } = tileLayout(bits, columns);
    const data = device.allocate(bands * bandBytes + SLACK);
    device.bytes(data).set(codes);
    return { data, lowTiles };
  }
  const tiles = Math.ceil(columns / TILE_SIDE);
  const data = device.allocate(bands * tiles * TILE_SIDE * fieldBits(scheme) + SLACK);
  const dimension = family === "vq" ? 2 : 1;
  const [perRow, width] = [Math.ceil(columns / dimension), bits * dimension];
  const { packBitPlanes, packDirect, packFields } = device.kernels;
  withStaged(codes, device, (at) => {
    if (layout === "planes") packBitPlanes(at, data.place, rows, columns, bits);
    else if (layout === "direct") packDirect(at, data.place, rows, perRow, width);
    else packFields(at, data.place, rows, perRow, width, fieldBits(scheme));
  });
  return { data, lowTiles: tiles };
}

function withStaged(codes: Uint8Array, device: WasmDevice, use: (address: number) => void): void {
  const staging = device.reserve(codes.length + SLACK);
  device.bytes(staging).set(codes);
  use(staging.place);
  device.free(staging);
}

function packed(
  { scheme, rows, columns }: Pick<LinearWeights, "scheme" | "rows" | "columns">,
  parts: Omit<PackedLinear, "scheme" | "rows" | "columns" | "byteLength">,
): PackedLinear {
  const bytes = (slot?: Slot) => slot?.byteLength ?? 0;
  return { scheme, rows, columns, ...parts, byteLength: bytes(parts.data) + bytes(parts.scales) };
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}
