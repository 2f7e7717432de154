/**
 * What trying Halftone in Chromium needs: the browser, and a server of files with the headers of choice.
 *
 * @module
 */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** Headers that make a page cross-origin isolated, so that its threads may share memory. */
export const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** CHROMIUM_PATH, or where Debian puts it; undefined, after one line on stderr, where there is none. */
export function findChromium(): string | undefined {
  const path = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
  if (existsSync(path)) return path;
  console.error(`skipped: no Chromium at ${path}; install it or set CHROMIUM_PATH`);
  return undefined;
}

/** Starts Chromium without a window, with a new profile that goes when it closes. */
export function startChromium(path: string): Promise<Browser> {
  return chromium.launch({ executablePath: path, args: FLAGS });
}

export interface FileServer {
  /** With a slash at its end. */
  readonly url: string;
  /** Path and Range header of every request. */
  readonly requests: { readonly path: string; readonly range: string | undefined }[];
  close(): Promise<void>;
}

export interface FileServerOptions {
  /** Folders by their first path segment. */
  readonly folders: Readonly<Record<string, string>>;
  /** What `/` answers. */
  readonly page?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** False for a server that sends whole files whatever is asked. */
  readonly ranges?: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".json": "application/json",
  ".html": "text/html",
};

/** Serves files on a free port of this machine. */
export async function serveFiles({
  folders,
  page = "",
  headers,
  ranges = true,
}: FileServerOptions): Promise<FileServer> {
  const requests: FileServer["requests"] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, "http://host").pathname);
    requests.push({ path, range: request.headers.range });
    for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
    if (path === "/") return void response.setHeader("content-type", "text/html").end(page);
    const [, folder, ...rest] = normalize(path).split("/");
    const file = join(folders[folder] ?? "/nowhere", ...rest);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return void response.writeHead(404).end();
    response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
    sendFile(response, file, ranges ? request.headers.range : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    // A name that browsers trust as they trust https.
    url: `http://localhost:${(server.address() as AddressInfo).port}/`,
    requests,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function sendFile(response: ServerResponse, file: string, range: string | undefined): void {
  const { size } = statSync(file);
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? [];
  if (from === undefined) {
    response.writeHead(200, { "content-length": size });
    createReadStream(file).pipe(response);
    return;
  }
  const [start, end] = [Number(from), Math.min(Number(to), size - 1)];
  if (start >= size) {
    response.writeHead(416, { "content-range": `bytes */${size}` }).end();
    return;
  }
  response.writeHead(206, {
    "content-range": `bytes ${start}-${end}/${size}`,
    "content-length": end - start + 1,
  });
  createReadStream(file, { start, end }).pipe(response);
}
