import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { PlannableLayer } from "./layers.ts";

/** SHA-256 in hex over the names and shapes of a model's layers and the first row of each: tells models apart cheaply. */
export async function modelDigest(
  { tensors }: Pick<Checkpoint, "tensors">,
  layers: readonly PlannableLayer[],
): Promise<string> {
  const parts: Uint8Array[] = [];
  for (const { name, rows, columns } of layers) {
    const row = await tensors.get(name)!.readRows(0, 1);
    parts.push(new TextEncoder().encode(JSON.stringify([name, rows, columns])));
    parts.push(new Uint8Array(row.buffer, row.byteOffset, row.byteLength));
  }
  const hash = await crypto.subtle.digest("SHA-256", await new Blob(parts as BlobPart[]).arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
