import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HubOptions } from "../../../src/checkpoint/hub/node.ts";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/** What the servers saw. */
export interface Seen {
  readonly host: "hub" | "storage";
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

/** A hub on 127.0.0.1 with a storage host on another port, and an empty HF_HOME. */
export interface FakeHub {
  readonly home: string;
  readonly options: HubOptions;
  readonly seen: Seen[];
  /** By path; may be changed between requests. */
  readonly files: Map<string, Uint8Array>;
  commit: string;
  /** Replaces the answer to a request when it returns true. */
  intercept: (seen: Seen, response: ServerResponse, request: IncomingMessage) => boolean;
  /** Changes the listing before it is sent. */
  listing: (listing: Listing) => unknown;
  close(): Promise<void>;
}

export interface Listing {
  sha: string;
  siblings: { rfilename: string; size?: number; blobId?: string; lfs?: { sha256: string; size: number } }[];
}

/** Files of so many bytes or more are "LFS": served by the storage host, named by SHA-256. */
const LFS_BYTES = 1000;

export async function startFakeHub(files: Record<string, Uint8Array | string>): Promise<FakeHub> {
  const home = await mkdtemp(join(tmpdir(), "halftone-hub-"));
  const encoder = new TextEncoder();
  const entries = Object.entries(files).map(
    ([path, data]) => [path, typeof data === "string" ? encoder.encode(data) : data] as const,
  );
  const storage = createServer((request, response) => serve("storage", request, response));
  const storageUrl = await listen(storage);
  const hubServer = createServer((request, response) => serve("hub", request, response));
  const endpoint = await listen(hubServer);
  const hub: FakeHub = {
    home,
    options: {
      env: { HF_HOME: home, HF_ENDPOINT: endpoint, HF_TOKEN: "hf_secret" },
      partBytes: 64 * 1024,
      retries: 3,
      system: { sleep: async (_, signal) => signal?.throwIfAborted() },
    },
    seen: [],
    files: new Map(entries),
    commit: COMMIT,
    intercept: () => false,
    listing: (listing) => listing,
    async close() {
      for (const server of [storage, hubServer]) {
        server.closeAllConnections();
        server.close();
      }
      await rm(home, { recursive: true, force: true });
    },
  };

  function serve(host: "hub" | "storage", request: IncomingMessage, response: ServerResponse) {
    const path = decodeURIComponent(request.url ?? "");
    const { range, authorization } = request.headers;
    const seen: Seen = { host, method: request.method ?? "", path, range, authorization };
    hub.seen.push(seen);
    if (hub.intercept(seen, response, request)) return;
    if (path.startsWith("/api/models/")) {
      const siblings = [...hub.files].map(([name, data]) => sibling(name, data));
      response.end(JSON.stringify(hub.listing({ sha: hub.commit, siblings })));
      return;
    }
    const name = path.replace(/^\/[^/]+\/[^/]+\/(?:resolve|store)\/[^/]+\//, "");
    const data = hub.files.get(name);
    if (data === undefined) {
      response.writeHead(404, { "x-error-code": "EntryNotFound" }).end();
      return;
    }
    const large = data.length >= LFS_BYTES;
    if (host === "hub" && large) {
      const location = `${storageUrl}${path.replace("/resolve/", "/store/")}`;
      const linked = { "x-linked-etag": `"${sha256(data)}"`, "x-linked-size": data.length };
      response.writeHead(302, { location, "x-repo-commit": hub.commit, ...linked }).end();
      return;
    }
    sendBytes(response, request, data, { etag: `"${gitSha1(data)}"`, "x-repo-commit": hub.commit });
  }
  return hub;
}

/** Answers with the range that was asked for. */
export function sendBytes(
  response: ServerResponse,
  request: IncomingMessage,
  data: Uint8Array,
  headers: Record<string, string> = {},
): void {
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  const [start, end] = match === null ? [0, data.length] : [Number(match[1]), Number(match[2]) + 1];
  const range: Record<string, string> =
    match === null ? {} : { "content-range": `bytes ${start}-${end - 1}/${data.length}` };
  response.writeHead(match === null ? 200 : 206, {
    ...headers,
    ...range,
    "content-length": String(end - start),
  });
  if (request.method === "HEAD") response.end();
  else response.end(data.subarray(start, end));
}

/** Sends the first `bytes` bytes of the range asked for, then cuts the connection. */
export function cutAfter(
  response: ServerResponse,
  request: IncomingMessage,
  data: Uint8Array,
  bytes: number,
): void {
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  const [start, end] = match === null ? [0, data.length] : [Number(match[1]), Number(match[2]) + 1];
  const range: Record<string, string> =
    match === null ? {} : { "content-range": `bytes ${start}-${end - 1}/${data.length}` };
  response.writeHead(match === null ? 200 : 206, { ...range, "content-length": String(end - start) });
  response.write(data.subarray(start, Math.min(end, start + bytes)), () =>
    setTimeout(() => response.destroy(), 20),
  );
}

export function sha256(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

export function gitSha1(data: Uint8Array): string {
  return createHash("sha1").update(`blob ${data.length}\0`).update(data).digest("hex");
}

/** Bytes that differ everywhere, so that a misplaced range shows. */
export function noise(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

function sibling(rfilename: string, data: Uint8Array): Listing["siblings"][number] {
  const entry = { rfilename, size: data.length, blobId: gitSha1(data) };
  return data.length >= LFS_BYTES ? { ...entry, lfs: { sha256: sha256(data), size: data.length } } : entry;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
