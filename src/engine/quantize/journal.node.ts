/**
 * What a quantization has finished, so that one that was killed can go on: a file of lines in the partial
 * folder: first the hash of what the run was asked, then a line for each finished tensor with the hash of its bytes.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { appendFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unwritable } from "../../checkpoint/outputFolder.node.ts";

const FILE = ".halftone-journal";

export interface Journal {
  /** Hashes of tensors that an earlier run with the same request finished, by name. */
  readonly finished: ReadonlyMap<string, string>;
  /** Notes that a tensor's bytes are in the file. */
  add(name: string, hash: string): Promise<void>;
  /** Removes the journal: the folder is complete. */
  finish(): Promise<void>;
}

/** Whether a folder holds the journal of this very request. */
export async function journalMatches(folder: string, request: string): Promise<boolean> {
  const [first] = await journalLines(folder);
  return first === digest(request);
}

/** Continues the folder's journal, or starts one. */
export async function openJournal(folder: string, request: string, resumed: boolean): Promise<Journal> {
  const path = join(folder, FILE);
  const finished = new Map<string, string>();
  if (resumed) {
    for (const line of (await journalLines(folder)).slice(1)) {
      // A kill may have cut the last line.
      const match = /^([0-9a-f]{64}) (.+)$/.exec(line);
      if (match) finished.set(match[2], match[1]);
    }
  }
  const lines = [digest(request), ...Array.from(finished, ([name, hash]) => `${hash} ${name}`)];
  const failed = (cause: unknown): never => {
    throw unwritable(path, cause);
  };
  await writeFile(path, `${lines.join("\n")}\n`).catch(failed);
  return {
    finished,
    add: (name, hash) => appendFile(path, `${hash} ${name}\n`).catch(failed),
    finish: () => rm(path),
  };
}

/** SHA-256 in hex, over the parts as if they were one. */
export function digest(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

async function journalLines(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, FILE), "utf8").catch(() => "");
  return text.split("\n").slice(0, -1);
}
