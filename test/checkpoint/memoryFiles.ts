import { bufferSource } from "../../src/checkpoint/byteSource.ts";
import type { FileSet } from "../../src/checkpoint/huggingface/fileSet.ts";

/** A model folder in memory; texts, bytes, and objects as JSON. */
export function memoryFiles(files: Record<string, string | Uint8Array | object>): FileSet {
  const bytes = (content: string | Uint8Array | object) => {
    if (content instanceof Uint8Array) return content;
    return new TextEncoder().encode(typeof content === "string" ? content : JSON.stringify(content));
  };
  return {
    name: "folder",
    async open(file) {
      return file in files ? bufferSource(bytes(files[file]), `folder/${file}`) : undefined;
    },
    async list(subfolder) {
      const prefix = subfolder === undefined ? "" : `${subfolder}/`;
      return Object.keys(files)
        .filter((name) => name.startsWith(prefix))
        .map((name) => name.slice(prefix.length));
    },
  };
}
