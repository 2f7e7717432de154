import { createReadStream } from "node:fs";
import { access, constants, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { UsageError } from "../errors.ts";
import { replaceFile } from "../replaceFile.node.ts";

/** A JavaScript string holds little more. */
const LONGEST_TEXT = 2 ** 29 - 2 ** 10;

/** Reads a UTF-8 file that a flag names. */
export async function readTextFile(path: string, flag: string): Promise<string> {
  const bytes = await readBytes(path, LONGEST_TEXT).catch((cause: NodeJS.ErrnoException) => {
    const reasons: Record<string, string> = {
      ENOENT: "no such file",
      EISDIR: "a folder",
      EACCES: "not readable",
    };
    throw new UsageError(`${flag} ${path}: ${reasons[cause.code ?? ""] ?? cause.message}; name a text file`, {
      cause,
    });
  });
  if (!bytes)
    throw new UsageError(`${flag} ${path}: holds more than ${LONGEST_TEXT} bytes; give a part of it`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UsageError(`${flag} ${path}: is not UTF-8 text; convert it first`, { cause });
  }
}

/** All of a file, or of a pipe; nothing if that is more than `most`, or has no end. */
async function readBytes(path: string, most: number): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of createReadStream(path)) {
    length += chunk.length;
    if (length > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads a JSON file that a flag names; `where` describes the format. */
export async function readJsonFile(path: string, flag: string, where: string): Promise<unknown> {
  const content = await readTextFile(path, flag);
  try {
    return JSON.parse(content);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/\s+/g, " ").slice(0, 160) : "unreadable";
    throw new UsageError(`${flag} ${path}: broken JSON (${reason}); see ${where} for the format`, { cause });
  }
}

/** Writes a text to a file that a flag names, whole or not at all; to a pipe or device piece by piece. */
export async function writeTextFile(path: string, content: string, flag: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  const write = found && !found.isFile() ? writeFile : replaceFile;
  await write(path, content).catch((cause) => {
    throw unwritable(path, flag, cause);
  });
}

/** Writes a document to a JSON file that a flag names. */
export function writeJsonFile(path: string, document: unknown, flag: string): Promise<void> {
  return writeTextFile(path, `${JSON.stringify(document, null, 2)}\n`, flag);
}

/** Refuses a file that {@link writeTextFile} could not write, before anybody waits for what shall be in it. */
export async function checkWritable(path: string | undefined, flag: string): Promise<void> {
  if (path === undefined) return;
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) throw unwritable(path, flag, { code: "EISDIR" });
  await access(found || !path ? path : `${dirname(path)}/`, constants.W_OK).catch((cause) => {
    throw unwritable(path, flag, cause);
  });
}

function unwritable(path: string, flag: string, cause: Partial<NodeJS.ErrnoException>): UsageError {
  const reasons: Record<string, string> = {
    ENOENT: "its folder does not exist",
    ENOTDIR: "its folder is a file",
    EISDIR: "is a folder",
    EACCES: "may not be written",
    EROFS: "may not be written",
  };
  const reason = reasons[cause.code ?? ""] ?? cause.message;
  return new UsageError(`${flag} ${path}: ${reason}; name another file`, { cause });
}

/** The value of a flag that a verb cannot do without. */
export function required(value: string | undefined, flag: string): string {
  if (value) return value;
  throw new UsageError(`${flag} is missing; see --help`);
}

/** Everything that stdin gives, less the newline that `echo` puts at the end. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
}
