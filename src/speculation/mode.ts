/**
 * Who drafts: `w4a8` and `w4a4` the model itself with 8- or 4-bit activations, `uncompensated` the model without its
 * residual, `ngram` what followed the last tokens earlier in the text, `auto` whichever of these pays.
 */
export const speculationModes = ["auto", "off", "w4a8", "w4a4", "uncompensated", "ngram"] as const;
export type SpeculationMode = (typeof speculationModes)[number];
