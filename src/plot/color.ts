/**
 * Colours for magnitudes.
 *
 * @module
 */

/** Light to dark through yellow, green and blue, each step darker than the last: readable without hue too. */
const anchors = [
  [255, 247, 188],
  [186, 228, 150],
  [92, 192, 162],
  [44, 137, 178],
  [48, 75, 150],
  [40, 22, 84],
] as const;

/** The colour of a share from 0 to 1. */
export function ramp(share: number): string {
  const at = Math.max(0, Math.min(1, share)) * (anchors.length - 1);
  const index = Math.min(anchors.length - 2, Math.floor(at));
  const [from, to] = [anchors[index], anchors[index + 1]];
  const mixed = from.map((value, i) => Math.round(value + (to[i] - value) * (at - index)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever can be read on a colour `#rrggbb`. */
export function readableOn(color: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#222" : "#fff";
}
