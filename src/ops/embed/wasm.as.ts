import { share } from "../../backends/wasm/parallel.as";
import { readFields } from "../linear/fieldProducts.as";
import { widen } from "../linear/float.as";
import { BYTE_OFFSET, FIELD_TILES, FLOAT, HALF, NIBBLE_TILES, readBytes, readNibbles } from "../linear/tiles.as";

/** args: table, packing, ids, out, tokens, columns, scale, rowScales, codebook, padded, lowTiles, scratch, scratch bytes per thread */
export function embed(args: usize, t: i32, n: i32): void {
  const table = <usize>load<u32>(args);
  const packing = load<i32>(args, 4);
  const ids = <usize>load<u32>(args, 8);
  const out = <usize>load<u32>(args, 12);
  const tokens = load<i32>(args, 16);
  const columns = load<i32>(args, 20);
  const scale = load<f32>(args, 24);
  const rowScales = <usize>load<u32>(args, 28);
  const codebook = <usize>load<u32>(args, 32);
  const padded = load<i32>(args, 36);
  const spare = <usize>load<u32>(args, 44) + <usize>t * load<u32>(args, 48);
  const end = share(tokens, t + 1, n, 1);
  for (let token = share(tokens, t, n, 1); token < end; token++) {
    const id = load<i32>(ids + ((<usize>token) << 2));
    const target = out + ((<usize>token * columns) << 2);
    if (packing == FLOAT) memory.copy(target, table + ((<usize>id * columns) << 2), (<usize>columns) << 2);
    else if (packing == HALF) widen(table + ((<usize>id * columns) << 1), target, columns);
    else if (packing == FIELD_TILES) {
      readFields(table, codebook, load<i32>(args, 40), rowScales, id, 1, target, columns, spare);
    } else {
      const factor = load<f32>(rowScales + ((<usize>id) << 2));
      const lane = (<usize>(id & 15)) << 2;
      if (packing == NIBBLE_TILES)
        readNibbles(table + <usize>(id >> 4) * padded * 8 + lane, target, columns, factor, codebook);
      else readBytes(table + <usize>(id >> 4) * padded * 16 + lane, target, columns, factor, BYTE_OFFSET);
    }
    if (scale != 1)
      for (let i = 0; i < columns; i++) {
        const at = target + ((<usize>i) << 2);
        store<f32>(at, load<f32>(at) * scale);
      }
  }
}
