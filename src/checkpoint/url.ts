/**
 * Model files behind URLs, read by ranges: a page fetches of a file what it needs, when it needs it.
 *
 * @module
 */
import { CheckpointError, HalftoneError, UsageError } from "../errors.ts";
import { bufferSource, checkRange, readTarget } from "./byteSource.ts";
import type { ByteSource } from "./checkpoint.ts";
import type { FileSet } from "./huggingface/fileSet.ts";

export interface UrlOptions {
  /** Sent with every request, e.g. `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `include` sends cookies to other origins. */
  readonly credentials?: RequestCredentials;
  /** Ends all downloads; reads then reject with its reason. */
  readonly signal?: AbortSignal;
  /** Default the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Bytes of one request: a model takes some dozen, and a slow line answers each within seconds. */
const WINDOW = 4 * 2 ** 20;
/** Windows kept: readers alternate between codes, scales and float rows. */
const WINDOWS = 4;

/**
 * Opens a file by its URL. Undefined when the server has none: 404, 410, or a page of HTML instead, with which
 * servers of single-page apps answer for everything. A server that ignores Range sends the whole file at once.
 *
 * @throws UsageError when access is refused or the URL is none, HalftoneError when the server or the line fails.
 * Nothing is tried twice.
 */
export async function openUrl(url: string | URL, options: UrlOptions = {}): Promise<ByteSource | undefined> {
  const name = String(url);
  const closing = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
  const get = (start: number) => request(name, start, { ...options, signal });

  const first = await get(0);
  if (first.status === 404 || first.status === 410 || isPage(first, name)) {
    await first.body?.cancel();
    return undefined;
  }
  if (first.status === 200) return bufferSource(await readAll(first, name), name);
  const size = first.status === 416 ? 0 : await totalSize(first, name, options, signal);
  const opened = first.status === 416 ? new Uint8Array(0) : await readExactly(first, name, 0, size);
  const windows = new Map<number, Promise<Uint8Array>>([[0, Promise.resolve(opened)]]);
  let newest = 0;

  const fetchWindow = async (index: number) => {
    const response = await get(index * WINDOW);
    if (response.status !== 206)
      throw changed(name, index * WINDOW, `answered ${response.status} to a range`);
    const total = totalOf(response);
    if (total !== undefined && total !== size) throw changed(name, 0, `has ${total} bytes now, had ${size}`);
    return readExactly(response, name, index * WINDOW, size);
  };
  const window = (index: number): Promise<Uint8Array> => {
    const bytes = windows.get(index) ?? fetchWindow(index);
    windows.delete(index);
    windows.set(index, bytes);
    // A later read may ask for a window that failed: it gets a request of its own.
    bytes.catch(() => windows.get(index) === bytes && windows.delete(index));
    if (windows.size > WINDOWS) windows.delete(windows.keys().next().value!);
    return bytes;
  };

  const extent = { name, size };
  return {
    ...extent,
    async read(offset, length, target) {
      checkRange(extent, offset, length);
      closing.signal.throwIfAborted();
      const into = readTarget(length, target);
      for (let done = 0; done < length; ) {
        const at = offset + done;
        const index = Math.floor(at / WINDOW);
        const bytes = window(index);
        // Who reads on reads the next window soon: it comes while this one is worked on.
        if (index === newest + 1 && (index + 1) * WINDOW < size) void window(index + 1).catch(() => {});
        newest = index;
        const from = at - index * WINDOW;
        const part = (await bytes).subarray(from, from + length - done);
        into.set(part, done);
        done += part.length;
      }
      return into;
    },
    async close() {
      windows.clear();
      closing.abort(new HalftoneError(`${name} was closed; open it again`));
    },
  };
}

/** The files below a URL, whose query goes to every file. Servers do not list, so `list` knows nothing. */
export function urlFiles(base: string | URL, options: UrlOptions = {}): FileSet {
  const root = new URL(base);
  if (!root.pathname.endsWith("/")) root.pathname += "/";
  let found = false;
  return {
    name: root.href,
    async open(file) {
      const url = new URL(file.split("/").map(encodeURIComponent).join("/"), root);
      url.search = root.search;
      try {
        const source = await openUrl(url, options);
        found ||= source !== undefined;
        return source;
      } catch (error) {
        // Storage services answer 403 for a file that is not there when they may not list the folder.
        if (found && error instanceof AccessError) return undefined;
        throw error;
      }
    },
    async list() {
      return [];
    },
  };
}

class AccessError extends UsageError {}

async function request(url: string, start: number, options: UrlOptions): Promise<Response> {
  const { headers, credentials, signal } = options;
  const range = `bytes=${start}-${start + WINDOW - 1}`;
  const response = await send(url, { headers: { ...headers, range }, credentials, signal }, options);
  const { status } = response;
  if (status === 401 || status === 403) {
    await response.body?.cancel();
    throw new AccessError(
      `${url}: the server refuses access (${status}); give a token as headers.authorization`,
    );
  }
  if (![200, 206, 404, 410, 416].includes(status)) {
    await response.body?.cancel();
    throw new HalftoneError(`${url}: the server answered ${status}; check the address or try again later`);
  }
  return response;
}

async function send(url: string, init: RequestInit, options: UrlOptions): Promise<Response> {
  try {
    return await (options.fetch ?? fetch)(url, init);
  } catch (cause) {
    init.signal?.throwIfAborted();
    throw unreachable(url, cause);
  }
}

function unreachable(url: string, cause: unknown): HalftoneError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new HalftoneError(
    `${url}: cannot be fetched (${reason}); check the connection, and that the server allows this origin (CORS)`,
    { cause },
  );
}

function isPage(response: Response, url: string): boolean {
  const type = response.headers.get("content-type") ?? "";
  return response.status === 200 && type.startsWith("text/html") && !/\.html?$/.test(new URL(url).pathname);
}

function totalOf(response: Response): number | undefined {
  const match = /^bytes (?:\d+-\d+|\*)\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  return match === null ? undefined : Number(match[1]);
}

/** Other origins may hide Content-Range; what HEAD tells is never hidden. */
async function totalSize(
  response: Response,
  url: string,
  { headers, credentials, fetch }: UrlOptions,
  signal: AbortSignal,
): Promise<number> {
  const told = totalOf(response);
  if (told !== undefined) return told;
  const head = await send(url, { method: "HEAD", headers, credentials, signal }, { fetch });
  const length = head.headers.get("content-length");
  if (head.ok && length !== null && head.headers.get("content-encoding") === null) return Number(length);
  await response.body?.cancel();
  throw new HalftoneError(
    `${url}: the server does not tell the size; let it send Access-Control-Expose-Headers: Content-Range`,
  );
}

/** The body of a range from `start`: a whole window, or what the file has left. */
async function readExactly(
  response: Response,
  url: string,
  start: number,
  size: number,
): Promise<Uint8Array> {
  const expected = Math.min(WINDOW, size - start);
  const bytes = await readAll(response, url);
  if (bytes.length === expected) return bytes;
  throw new CheckpointError(url, `${expected} bytes asked for, ${bytes.length} came`, {
    offset: start,
    remedy: "the connection was cut or the server is at fault: try again",
  });
}

async function readAll(response: Response, url: string): Promise<Uint8Array> {
  try {
    return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    if (cause instanceof HalftoneError) throw cause;
    if (cause instanceof RangeError) {
      throw new HalftoneError(
        `${url}: too large for memory in one piece; serve it from a server that answers Range requests`,
        { cause },
      );
    }
    throw unreachable(url, cause);
  }
}

function changed(url: string, offset: number, problem: string): CheckpointError {
  return new CheckpointError(url, `the server ${problem}`, {
    offset,
    remedy: "the file changed while it was read: load it again",
  });
}
