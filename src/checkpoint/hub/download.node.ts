/**
 * Downloads one blob into the cache: in ranges side by side, continued after a cut by this or a later process,
 * checked against its checksum, and moved under its final name only when it is whole.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CheckpointError } from "../../errors.ts";
import { diskError } from "./disk.node.ts";
import { type Subject, subjectName, TransientFailure } from "./failure.ts";
import { type Answer, type HubClient, request, withRetries } from "./http.node.ts";
import { withLock } from "./lock.node.ts";
import { type Part, planParts, readNote, receivedBytes, writeNote } from "./parts.ts";
import type { BlobFile } from "./system.node.ts";

/** A blob to download. */
export interface BlobRequest {
  readonly subject: Subject;
  /** Address of the file at the hub. */
  readonly url: string;
  /** SHA-256 (64 hex digits) of the content or git's SHA-1 of it (40); anything else cannot be checked. */
  readonly blob: string;
  readonly size: number;
  /** Final path. */
  readonly path: string;
  readonly lockPath: string;
  readonly connections: number;
  readonly partBytes: number;
  /** Bytes that came, or with a minus have to come again; `found` when an earlier process left them. */
  onBytes(bytes: number, found: boolean): void;
}

/** End of the name of an unfinished blob. Not huggingface_hub's `.incomplete`: that one is appended to. */
export const UNFINISHED = ".halftone.incomplete";
/** End of the name of the note beside it. */
export const NOTE = `${UNFINISHED}.json`;
/** So many bytes in one attempt count as progress: failures are counted anew. */
const PROGRESS_BYTES = 65_536;
/** Bounds what an absurd size claim makes us plan. */
const MAX_PARTS = 65_536;

/** The server sends the whole file whatever range is asked for. */
class RangesIgnored extends Error {}

interface Job {
  readonly client: HubClient;
  readonly blob: BlobRequest;
  readonly file: BlobFile;
  /** Where the hub redirected to last, to skip the detour. */
  location: string | undefined;
}

/**
 * Downloads `blob` unless it is there already. Where it is cut short, what came is kept for the next call.
 *
 * @throws CheckpointError when size or checksum are wrong, HalftoneError when the network or the disk fails.
 */
export async function downloadBlob(client: HubClient, blob: BlobRequest): Promise<void> {
  try {
    if (await hasSize(blob.path, blob.size)) return blob.onBytes(blob.size, true);
    await mkdir(dirname(blob.path), { recursive: true });
    await withLock(blob.lockPath, client.system, client.signal, async () => {
      if (await hasSize(blob.path, blob.size)) return blob.onBytes(blob.size, true);
      const resumed = await fill(client, blob);
      if (await hasChecksum(blob, client.signal)) return await finish(blob);
      await discard(blob);
      blob.onBytes(-blob.size, false);
      // Bytes of an earlier process may have been damaged on disk: once more from the start.
      if (resumed) {
        await fill(client, blob);
        if (await hasChecksum(blob, client.signal)) return await finish(blob);
        await discard(blob);
      }
      throw new CheckpointError(
        subjectName(blob.subject),
        `the bytes received do not have the checksum ${blob.blob}`,
        {
          remedy:
            "they were thrown away, pull again; when it stays so the server or a proxy changes the file",
        },
      );
    });
  } catch (error) {
    throw diskError(error, `${subjectName(blob.subject)} (${blob.size} bytes)`, dirname(blob.path));
  }
}

/** True for a file of exactly `size` bytes, links followed. */
export async function hasSize(path: string, size: number): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  return info?.isFile() === true && info.size === size;
}

/** Brings the unfinished file to full length; true when an earlier process had begun it. */
async function fill(client: HubClient, blob: BlobRequest): Promise<boolean> {
  const noted = await readParts(blob);
  const partBytes = noted?.partBytes ?? Math.max(blob.partBytes, Math.ceil(blob.size / MAX_PARTS));
  const parts = noted?.parts ?? planParts(blob.size, partBytes);
  const found = receivedBytes(parts);
  const file = await client.system.open(blob.path + UNFINISHED);
  try {
    await file.truncate(blob.size);
    blob.onBytes(found, true);
    await fetchParts({ client, blob, file, location: undefined }, parts, partBytes);
    await file.sync();
  } finally {
    await file.close();
  }
  return found > 0;
}

async function fetchParts(job: Job, parts: Part[], partBytes: number): Promise<void> {
  try {
    await fetchSideBySide(job, parts, partBytes);
  } catch (error) {
    if (!(error instanceof RangesIgnored)) throw error;
    job.blob.onBytes(-receivedBytes(parts), false);
    await fetchSideBySide(job, planParts(job.blob.size, job.blob.size), job.blob.size);
  }
}

async function fetchSideBySide(job: Job, parts: readonly Part[], partBytes: number): Promise<void> {
  const stop = new AbortController();
  const signal =
    job.client.signal === undefined ? stop.signal : AbortSignal.any([job.client.signal, stop.signal]);
  const client = { ...job.client, signal };
  const waiting = parts.filter((part) => part.received < part.length);
  let saved = Promise.resolve();
  const save = () => {
    saved = saved.then(() => saveParts(job.blob, parts, partBytes));
    return saved;
  };
  const work = async () => {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      await fetchPart(client, job, part);
      await save();
    }
  };
  const connections = Array.from({ length: Math.min(job.blob.connections, waiting.length) }, () =>
    work().catch((error) => {
      // The first failure stops the others; theirs are but its echo.
      if (!stop.signal.aborted) stop.abort(error);
    }),
  );
  await Promise.all(connections);
  if (stop.signal.aborted || job.client.signal?.aborted) {
    await save();
    job.client.signal?.throwIfAborted();
    throw stop.signal.reason;
  }
}

async function fetchPart(client: HubClient, job: Job, part: Part): Promise<void> {
  const { blob, file } = job;
  await withRetries(client, blob.subject, async (progressed) => {
    const from = part.start + part.received;
    const whole = from === 0 && part.length === blob.size;
    const headers: Record<string, string> = whole
      ? {}
      : { range: `bytes=${from}-${part.start + part.length - 1}` };
    const answer = await request(client, job.location ?? blob.url, blob.subject, { headers }).catch(
      (error) => {
        job.location = undefined;
        throw error;
      },
    );
    job.location = answer.url;
    try {
      checkRange(answer, blob, part, from, whole);
      for await (const chunk of answer.chunks()) {
        if (part.received + chunk.length > part.length)
          throw wrongSize(
            blob,
            `more than the ${part.length} bytes asked for came`,
            part.start + part.length,
          );
        await file.write(chunk, part.start + part.received);
        part.received += chunk.length;
        blob.onBytes(chunk.length, false);
        if (part.start + part.received - from >= PROGRESS_BYTES) progressed();
      }
    } finally {
      await answer.close();
    }
    if (part.received < part.length)
      throw new TransientFailure(
        `the connection was cut at byte ${part.start + part.received} of ${blob.size}`,
      );
  });
}

/** Checks that the bytes to come are those asked for, and that the file has the size that was announced. */
function checkRange(answer: Answer, blob: BlobRequest, part: Part, from: number, whole: boolean): void {
  if (answer.status === 206) {
    const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(answer.headers.get("content-range") ?? "");
    if (range === null || Number(range[1]) !== from)
      throw wrongSize(blob, "the server sent another range", from);
    if (range[3] !== "*" && Number(range[3]) !== blob.size)
      throw wrongSize(blob, `it was announced with ${blob.size} bytes but has ${range[3]}`);
    return;
  }
  if (!whole && part.length !== blob.size) throw new RangesIgnored();
  const length = answer.headers.get("content-length");
  if (length !== null && answer.headers.get("content-encoding") === null && Number(length) !== blob.size)
    throw wrongSize(blob, `it was announced with ${blob.size} bytes but has ${length}`);
  // A range was asked for and the whole file comes: from the start again.
  blob.onBytes(-part.received, false);
  part.received = 0;
}

function wrongSize(blob: BlobRequest, problem: string, offset?: number): CheckpointError {
  return new CheckpointError(subjectName(blob.subject), problem, {
    offset,
    remedy: "the server is broken or hostile: check HF_ENDPOINT",
  });
}

async function hasChecksum(blob: BlobRequest, signal: AbortSignal | undefined): Promise<boolean> {
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(blob.blob)) return true;
  const hash = createHash(blob.blob.length === 64 ? "sha256" : "sha1");
  if (blob.blob.length === 40) hash.update(`blob ${blob.size}\0`);
  for await (const chunk of createReadStream(blob.path + UNFINISHED, { highWaterMark: 1 << 20, signal }))
    hash.update(chunk);
  return hash.digest("hex") === blob.blob;
}

async function finish(blob: BlobRequest): Promise<void> {
  await rename(blob.path + UNFINISHED, blob.path);
  await rm(blob.path + NOTE, { force: true });
}

async function discard(blob: BlobRequest): Promise<void> {
  await rm(blob.path + NOTE, { force: true });
  await rm(blob.path + UNFINISHED, { force: true });
}

async function readParts(blob: BlobRequest): Promise<{ partBytes: number; parts: Part[] } | undefined> {
  if (!(await hasSize(blob.path + UNFINISHED, blob.size))) return undefined;
  const text = await readFile(blob.path + NOTE, "utf8").catch(() => undefined);
  return text === undefined ? undefined : readNote(text, blob.size);
}

/** Best effort: without the note the next pull merely starts again. */
async function saveParts(blob: BlobRequest, parts: readonly Part[], partBytes: number): Promise<void> {
  if (parts.length === 0) return;
  try {
    await writeFile(`${blob.path}${NOTE}.tmp`, writeNote(blob.size, partBytes, parts));
    await rename(`${blob.path}${NOTE}.tmp`, blob.path + NOTE);
  } catch {
    await rm(`${blob.path}${NOTE}.tmp`, { force: true }).catch(() => {});
  }
}
