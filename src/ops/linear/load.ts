import type { FloatWeights, LinearWeights, QuantizedWeights } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { LinearLoader, WasmDevice } from "../../backends/wasm/backend.ts";
import { UnsupportedError } from "../../errors.ts";
import { codeTable } from "../../quantizers/codeTable.ts";
import { nuqLevels } from "../../quantizers/nuq.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { PackedLinear } from "./packed.ts";

/** Values of float weights read at a time. */
const CHUNK_VALUES = 1 << 20;

const TILE_ROWS = 16;
/** Canonical codes are read in words: the last code's word may reach past its row. */
const SLACK = 4;

/** Brings weights into memory in the packing that the fastest kernel for their scheme wants. */
export const linearLoader: LinearLoader = {
  load: (weights, device) =>
    "readRows" in weights ? loadFloat(weights, device) : Promise.resolve(loadQuantized(weights, device)),
  free(handle, device) {
    const { data, scales } = handle as PackedLinear;
    device.free(data);
    if (scales) device.free(scales);
  },
};

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
  return packed({ scheme, rows, columns }, { packing, data, padded: columns, bits: size * 8, dimension: 1 });
}

function loadQuantized(weights: QuantizedWeights, device: WasmDevice): LinearHandle {
  const { rows, columns, rotation } = weights;
  const { family, bits } = parseScheme(weights.scheme);
  const scales = device.reserve(roundUp(rows, TILE_ROWS) * 4);
  device.bytes(scales).fill(0);
  new Float32Array(device.memory.buffer, scales.place, rows).set(weights.scales);
  const padded = roundUp(columns, 8);

  if (family === "nuq" && bits <= 4) {
    const codebook = device.shared(`nibbles ${weights.scheme}`, () => {
      const levels = Uint8Array.from(nuqLevels(bits), (level) => level + 64);
      return Uint8Array.from({ length: 16 }, (_, i) => levels[i] ?? 64);
    });
    const data = device.allocate(roundUp(rows, TILE_ROWS) * padded * 0.5);
    withStaged(weights.codes, device, (at) =>
      device.kernels.packNibbles(at, data.place, rows, columns, bits, padded),
    );
    return packed(weights, {
      packing: "nibbleTiles",
      data,
      scales,
      codebook,
      padded,
      bits,
      dimension: 1,
      rotation,
    });
  }
  if (family === "uniform" && bits === 8) {
    const data = device.allocate(roundUp(rows, TILE_ROWS) * padded);
    withStaged(weights.codes, device, (at) =>
      device.kernels.packBytes(at, data.place, rows, columns, padded),
    );
    return packed(weights, { packing: "byteTiles", data, scales, padded, bits, dimension: 1, rotation });
  }
  const table = codeTable(parseScheme(weights.scheme));
  if (!table) {
    throw new UnsupportedError(
      `no kernel of the wasm backend multiplies ${weights.scheme} weights [${rows}, ${columns}]; quantize with another scheme`,
    );
  }
  const data = device.allocate(weights.codes.length + SLACK);
  device.bytes(data).set(weights.codes);
  const codebook = device.shared(`table ${weights.scheme}`, () => table.values);
  const { dimension } = table;
  return packed(weights, {
    packing: "table",
    data,
    scales,
    codebook,
    padded,
    bits: table.bits,
    dimension,
    rotation,
  });
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
