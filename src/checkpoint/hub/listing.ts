/**
 * The files of one revision of a hub repository, as the API lists them
 * (`GET /api/models/OWNER/NAME/revision/REV?blobs=true`).
 *
 * @module
 */
import { CheckpointError } from "../../errors.ts";
import { isCommit } from "./modelId.ts";

/** One file of a repository. */
export interface ListedFile {
  /** Path inside the repository, `/` between folders; checked by `judgePath`. */
  readonly path: string;
  /** Bytes; undefined when the listing does not say. */
  readonly size: number | undefined;
  /** Name of its blob: SHA-256 of the content for large (LFS) files, git's blob SHA-1 otherwise. */
  readonly blob: string | undefined;
}

/** A repository at one commit. */
export interface Listing {
  readonly commit: string;
  readonly files: readonly ListedFile[];
}

const MAX_PATH = 1024;
const BLOB = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * Judges a path that a server sent. `hostile`: it would leave the folder it is joined to.
 * `odd`: some file system could read it as something else (backslash, colon, control character,
 * device name, trailing dot or space), so it is never written. `plain`: safe everywhere.
 */
export function judgePath(path: string): "plain" | "odd" | "hostile" {
  if (/^[/\\]|^[A-Za-z]:/.test(path) || path.split(/[/\\]/).includes("..")) return "hostile";
  if (path.length > MAX_PATH || /[\\:*?"<>|]/.test(path) || hasControlCharacter(path)) return "odd";
  const odd = path.split("/").some((part) => part === "" || /[. ]$/.test(part) || DEVICE.test(part));
  return odd ? "odd" : "plain";
}

/** True when `name` can be the file name of a blob. */
export function isBlobName(name: string): boolean {
  return BLOB.test(name) && !name.includes("..");
}

/**
 * Reads the API's answer. Odd names are left out.
 *
 * @param where how to call the answer in messages.
 * @throws CheckpointError on a hostile name, a wrong size or a missing commit.
 */
export function parseListing(json: unknown, where: string): Listing {
  const remedy = "the server is broken or hostile: check HF_ENDPOINT";
  const fail = (problem: string) => new CheckpointError(where, problem, { remedy });
  if (!isRecord(json)) throw fail("the answer is no JSON object");
  if (typeof json.sha !== "string" || !isCommit(json.sha)) throw fail('"sha" is no commit');
  if (!Array.isArray(json.siblings)) throw fail('"siblings" is no list');
  const files: ListedFile[] = [];
  const seen = new Set<string>();
  for (const entry of json.siblings as unknown[]) {
    if (!isRecord(entry) || typeof entry.rfilename !== "string") throw fail("a file has no name");
    const path = entry.rfilename;
    const verdict = judgePath(path);
    if (verdict === "hostile") throw fail(`the file name ${JSON.stringify(path)} leaves the model's folder`);
    if (verdict === "odd" || seen.has(path)) continue;
    seen.add(path);
    const lfs = isRecord(entry.lfs) ? entry.lfs : undefined;
    const size = lfs?.size ?? entry.size;
    const blob = lfs?.sha256 ?? entry.blobId;
    if (size !== undefined && !isSize(size)) throw fail(`${path} has the size ${JSON.stringify(size)}`);
    if (blob !== undefined && !(typeof blob === "string" && isBlobName(blob)))
      throw fail(`${path} has the checksum ${JSON.stringify(blob)}`);
    files.push({ path, size, blob });
  }
  return { commit: json.sha, files };
}

/** True for a whole number of bytes that a file can have. */
export function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) < 32 || text.charCodeAt(i) === 127) return true;
  return false;
}
