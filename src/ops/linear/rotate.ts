import type { LoweringContext, WasmDevice } from "../../backends/wasm/backend.ts";
import type { Address, Instruction } from "../../backends/wasm/instruction.ts";
import { ROTATE } from "../../backends/wasm/opcodes.ts";
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";

/** Rotations of one size and seed are the same. */
export function rotationKey(rotation: Rotation | undefined): string {
  return rotation ? `rotation ${rotation.size} ${rotation.seed}` : "";
}

/** x [rows, size] rotated to out; both may be the same place. */
export function rotate(
  x: Address,
  out: Address,
  rows: number,
  rotation: Rotation,
  inverse: boolean,
  { device, scratch }: LoweringContext,
): Instruction {
  const { size, blocks, stages, bases } = rotation;
  const block = size / blocks;
  const { signs, list } = uploadRotation(rotation, inverse, device);
  return {
    code: ROTATE,
    args: [
      x,
      out,
      rows,
      size,
      signs,
      block,
      2 ** stages,
      list,
      bases.length,
      inverse ? 1 : 0,
      ...scratch.perThread(block * 4),
    ],
    tokenRows: rows,
  };
}

function uploadRotation(
  rotation: Rotation,
  inverse: boolean,
  device: WasmDevice,
): { signs: number; list: number } {
  const { size, scale, signs, bases } = rotation;
  const key = rotationKey(rotation);
  const scaled = device.shared(`${key} signs`, () => Float32Array.from(signs, (sign) => sign * scale));
  const innermostFirst = bases.toReversed();
  const list = device.shared(`${key} bases ${inverse}`, () =>
    Uint32Array.from(
      innermostFirst.flatMap(({ order, matrix }) => {
        const entry = inverse
          ? (i: number) => matrix[(i % order) * order + Math.floor(i / order)]
          : (i: number) => matrix[i];
        const floats = () => Float32Array.from(matrix, (_, i) => entry(i));
        return [order, device.shared(`base ${size} ${order} ${inverse}`, floats).place];
      }),
    ),
  );
  return { signs: scaled.place, list: list.place };
}
