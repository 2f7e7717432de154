// Tiles of 16 x 16 weights whose codes are one stream of fields of k bits, a field for two neighbouring columns of
// a row, rows first: the trellis' canonical layout (see quantizers/tcq/trellis.ts), and that of every code that is
// repacked so. Decoders write integers: bytes of 7 bits, for four columns after another 16 rows x 4 columns; or,
// where those are too coarse, 16 bits, for two columns after another 16 rows x 2 columns.

import { decodeCrumbs, decodeNibblePairs, decodeThreeBits, decodeUniform } from "./decodeLevels.as";
import { decodePairs, decodeTrellisTable } from "./decodeLookUps.as";
import { decodeSwizzleSum } from "./decodeSums.as";
import { decodeBitPlanes } from "./planeProducts.as";
import {
  BIT_PLANES, CRUMBS, decoderOf, NIBBLE_PAIRS, PAIRS, SWIZZLE_SUM, tileBytes, TRELLIS_TABLE, UNIFORM, WIDE_PAIRS,
} from "./plan.as";

/**
 * Decodes up to 8 tiles to 256 bytes each or, when wide, 512. `spare`: 256 bytes for each tile, where the places of
 * look-ups are written well before they are read; read at once they are a sixth slower.
 */
export function decodeTiles(part: usize, tile: usize, tiles: i32, to: usize, spare: usize): void {
  const decoder = decoderOf(part);
  if (decoder == SWIZZLE_SUM) decodeSwizzleSum(part, tile, tiles, to);
  else if (decoder == TRELLIS_TABLE) decodeTrellisTable(part, tile, tiles, to, spare);
  else if (decoder == PAIRS) decodePairs(part, tile, tiles, to, spare, false);
  else if (decoder == WIDE_PAIRS) decodePairs(part, tile, tiles, to, spare, true);
  else {
    for (; tiles; tiles--) {
      if (decoder == UNIFORM) decodeUniform(part, tile, to);
      else if (decoder == NIBBLE_PAIRS) decodeNibblePairs(part, tile, to);
      else if (decoder == CRUMBS) decodeCrumbs(part, tile, to);
      else if (decoder == BIT_PLANES) decodeBitPlanes(part, tile, to);
      else decodeThreeBits(part, tile, to);
      tile += tileBytes(part);
      to += 256;
    }
  }
}
