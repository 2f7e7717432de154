/**
 * Requests to the hub: redirects followed by hand so that the token stays with the hub, stalls noticed,
 * failures told apart into those worth a retry and those that are final.
 *
 * @module
 */
import { CheckpointError, HalftoneError } from "../../errors.ts";
import {
  isTransientStatus,
  retryAfterMs,
  type Subject,
  statusError,
  subjectName,
  TransientFailure,
} from "./failure.ts";
import type { HubOptions, HubSettings } from "./settings.node.ts";
import { type HubSystem, nodeSystem } from "./system.node.ts";

/** The hub as seen by one command. */
export interface HubClient {
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly system: HubSystem;
  readonly retries: number;
  readonly stallMs: number;
  readonly maxWaitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** An answer whose body has not been read. Call `close` in any case. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Where it came from in the end. */
  readonly url: string;
  /** The body; rejects with a TransientFailure when it is cut or stalls. */
  chunks(): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const FIRST_WAIT_MS = 500;
const LONGEST_BACKOFF_MS = 8000;

export function hubClient(settings: HubSettings, options: HubOptions): HubClient {
  return {
    endpoint: settings.endpoint,
    token: settings.token,
    system: { ...nodeSystem, ...options.system },
    retries: options.retries ?? 5,
    stallMs: options.stallMs ?? 30_000,
    maxWaitMs: options.maxWaitMs ?? 300_000,
    signal: options.signal,
  };
}

/**
 * Runs `attempt` until it succeeds, fails for good or has failed `client.retries + 1` times in a row, waiting
 * longer each time, or as long as the server asked. `attempt` calls `progressed` when it got substantially further.
 */
export async function withRetries<T>(
  client: HubClient,
  subject: Subject,
  attempt: (progressed: () => void) => Promise<T>,
): Promise<T> {
  let failures = 0;
  for (;;) {
    client.signal?.throwIfAborted();
    try {
      return await attempt(() => {
        failures = 0;
      });
    } catch (error) {
      client.signal?.throwIfAborted();
      if (!(error instanceof TransientFailure)) throw error;
      failures++;
      const wait =
        error.waitMs ?? Math.min(LONGEST_BACKOFF_MS, FIRST_WAIT_MS * 2 ** (failures - 1)) * jitter();
      if (failures > client.retries || wait > client.maxWaitMs)
        throw giveUp(client, subject, error, failures);
      await client.system.sleep(wait, client.signal);
    }
  }
}

/**
 * One request without retries. Redirects are followed; the Authorization header goes to the hub's own origin only.
 * With `stopAtOtherHost` the redirect that leaves the hub is itself the answer: it carries the file's metadata.
 *
 * @throws TransientFailure, or the final error.
 */
export async function request(
  client: HubClient,
  url: string,
  subject: Subject,
  options: { method?: "GET" | "HEAD"; headers?: Record<string, string>; stopAtOtherHost?: boolean } = {},
): Promise<Answer> {
  const home = new URL(client.endpoint);
  let target = new URL(url);
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const atHome = target.origin === home.origin;
    // Compressed bodies would hide the real size.
    const headers: Record<string, string> = { "accept-encoding": "identity", ...options.headers };
    if (atHome && client.token !== undefined) headers.authorization = `Bearer ${client.token}`;
    const answer = await send(client, target, { method: options.method ?? "GET", headers });
    try {
      const location = REDIRECTS.has(answer.status) ? answer.headers.get("location") : null;
      if (location === null) {
        checkStatus(client, answer, subject, atHome);
        return answer;
      }
      const next = redirectTarget(location, target, subject);
      if (options.stopAtOtherHost && next.origin !== home.origin) return answer;
      target = next;
    } catch (error) {
      await answer.close();
      throw error;
    }
    await answer.close();
  }
  throw new HalftoneError(`${subjectName(subject)}: more than ${MAX_REDIRECTS} redirects; check HF_ENDPOINT`);
}

/** The whole body, at most `limit` bytes. */
export async function readBody(answer: Answer, limit: number, subject: Subject): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer.chunks()) {
    length += chunk.length;
    if (length > limit)
      throw new CheckpointError(subjectName(subject), `the answer exceeds ${limit} bytes`, {
        remedy: "check HF_ENDPOINT",
      });
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let position = 0;
  for (const chunk of chunks) {
    whole.set(chunk, position);
    position += chunk.length;
  }
  return whole;
}

async function send(client: HubClient, url: URL, init: RequestInit): Promise<Answer> {
  const stop = new AbortController();
  const signal = client.signal === undefined ? stop.signal : AbortSignal.any([client.signal, stop.signal]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(), client.stallMs);
  };
  const failure = (error: unknown) => {
    clearTimeout(timer);
    if (stop.signal.aborted) return new TransientFailure(`no byte came for ${client.stallMs / 1000} s`);
    return new TransientFailure(networkProblem(error, url), { cause: error });
  };
  watch();
  let response: Response;
  try {
    response = await client.system.fetch(url.href, { ...init, redirect: "manual", signal });
  } catch (error) {
    throw failure(error);
  }
  const reader = response.body?.getReader();
  return {
    status: response.status,
    headers: response.headers,
    url: url.href,
    async *chunks() {
      while (reader !== undefined) {
        let next: Awaited<ReturnType<typeof reader.read>>;
        watch();
        try {
          next = await reader.read();
        } catch (error) {
          throw failure(error);
        }
        // A slow disk or consumer is no stall.
        clearTimeout(timer);
        if (next.done) return;
        yield next.value;
      }
    },
    async close() {
      clearTimeout(timer);
      await reader?.cancel().catch(() => {});
    },
  };
}

function checkStatus(client: HubClient, answer: Answer, subject: Subject, atHome: boolean): void {
  const { status, headers } = answer;
  if (status === 200 || status === 206) return;
  if (isTransientStatus(status))
    throw new TransientFailure(`it answered ${status}`, { waitMs: retryAfterMs(headers) });
  // Addresses on storage hosts are signed for a short time: ask the hub for a new one.
  if (!atHome && status !== 416) throw new TransientFailure(`the storage host answered ${status}`);
  if (status === 416)
    throw new CheckpointError(subjectName(subject), "the server has fewer bytes than it announced");
  throw statusError(status, headers, subject, client.endpoint, client.token !== undefined);
}

function redirectTarget(location: string, from: URL, subject: Subject): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  const allowed = next !== undefined && (next.protocol === "https:" || next.protocol === from.protocol);
  if (!allowed || !/^https?:$/.test(next.protocol))
    throw new HalftoneError(
      `${subjectName(subject)}: the server redirects to an address that is not safe (${from.host}); check HF_ENDPOINT`,
    );
  return next;
}

function giveUp(
  client: HubClient,
  subject: Subject,
  error: TransientFailure,
  failures: number,
): HalftoneError {
  const name = subjectName(subject);
  const asked = error.waitMs === undefined ? "" : `, and asks to wait ${Math.ceil(error.waitMs / 1000)} s`;
  const times = failures === 1 ? "" : ` (tried ${failures} times)`;
  const remedy = "run it again later, it continues where it stopped";
  return new HalftoneError(`${name}: ${client.endpoint}: ${error.message}${asked}${times}; ${remedy}`, {
    cause: error,
  });
}

function networkProblem(error: unknown, url: URL): string {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  return `the connection to ${url.host} failed (${cause?.code ?? cause?.message ?? (error as Error).message})`;
}

function jitter(): number {
  return 0.75 + Math.random() / 2;
}
