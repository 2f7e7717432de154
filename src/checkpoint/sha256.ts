/** SHA-256 in hex of bytes one after another. */
export async function sha256(parts: Uint8Array[]): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", await new Blob(parts as BlobPart[]).arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
