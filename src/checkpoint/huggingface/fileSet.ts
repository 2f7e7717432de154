import type { ByteSource } from "../checkpoint.ts";

/** The files of one model, wherever they lie: a folder, a package, a web address. */
export interface FileSet {
  /** How to call it in messages, usually the path. */
  readonly name: string;
  /** Opens a file by its path below the set; undefined when there is none. */
  open(file: string): Promise<ByteSource | undefined>;
  /** File names directly in the set, or in one of its subfolders; empty when unknown. */
  list(subfolder?: string): Promise<string[]>;
}
