/** Dimensions of the small file: two heads of 4 share one key/value head. */
export const small = {
  hidden: 8,
  feedForward: 6,
  layers: 2,
  heads: 2,
  keyValueHeads: 1,
  vocabulary: 262,
  context: 5,
};

/** A llama2.c file whose values count up from 0 in file order. */
export function llama2cFile(tied: boolean, d = small): Uint8Array {
  const kv = (d.hidden / d.heads) * d.keyValueHeads;
  const layer = 2 * d.hidden + 2 * d.hidden ** 2 + 2 * kv * d.hidden + 3 * d.hidden * d.feedForward;
  const table = d.vocabulary * d.hidden;
  const count = table + d.layers * layer + d.hidden + d.context * (d.hidden / d.heads) + (tied ? 0 : table);
  const bytes = new Uint8Array(28 + 4 * count);
  const signed = tied ? d.vocabulary : -d.vocabulary;
  new Int32Array(bytes.buffer, 0, 7).set([
    d.hidden,
    d.feedForward,
    d.layers,
    d.heads,
    d.keyValueHeads,
    signed,
    d.context,
  ]);
  new Float32Array(bytes.buffer, 28).forEach((_, i, all) => {
    all[i] = i;
  });
  return bytes;
}

/** llama2.c's tokenizer.bin with three pieces after the bytes: "a", " a" as a merge, and the space. */
export function tokenizerFile(): Uint8Array {
  const byte = (i: number) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`;
  const pieces = [
    "<unk>",
    "\n<s>\n",
    "\n</s>\n",
    ...Array.from({ length: 256 }, (_, i) => byte(i)),
    " a",
    " ",
    "a",
  ];
  const encoded = pieces.map((piece) => new TextEncoder().encode(piece));
  const bytes = new Uint8Array(4 + encoded.reduce((sum, piece) => sum + 8 + piece.length, 0));
  const view = new DataView(bytes.buffer);
  view.setInt32(0, Math.max(...encoded.map((piece) => piece.length)), true);
  let at = 4;
  for (const [id, piece] of encoded.entries()) {
    view.setFloat32(at, id < 259 ? 0 : 259 - id, true);
    view.setInt32(at + 4, piece.length, true);
    bytes.set(piece, at + 8);
    at += 8 + piece.length;
  }
  return bytes;
}

export function concatenate(...parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
