/**
 * Where the hub is and where its cache lies: the environment variables that Hugging Face's tools share.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import type { Progress } from "./progress.ts";
import type { HubSystem } from "./system.node.ts";

/** Options of everything that talks to the hub or its cache. All have defaults. */
export interface HubOptions {
  /** Instead of `process.env`: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called while bytes come in. */
  readonly onProgress?: (progress: Progress) => void;
  /** Stops the work; what has been downloaded is kept and the next pull continues. */
  readonly signal?: AbortSignal;
  /** Connections at once; default 4. */
  readonly connections?: number;
  /** Bytes of one range of a large file; default 16 MiB. */
  readonly partBytes?: number;
  /** Failures in a row that are tolerated before giving up; default 5. */
  readonly retries?: number;
  /** Milliseconds without a byte after which a connection counts as dead; default 30 s. */
  readonly stallMs?: number;
  /** Longest wait that a server may ask for (Retry-After), in milliseconds; default 5 minutes. */
  readonly maxWaitMs?: number;
  /** Replaces parts of the machine, for tests. */
  readonly system?: Partial<HubSystem>;
}

/** The environment, read. */
export interface HubSettings {
  /** The folder of `models--OWNER--NAME` folders. */
  readonly cacheFolder: string;
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** No network at all. */
  readonly offline: boolean;
}

/** Reads the environment. @throws UsageError when HF_ENDPOINT or the token cannot be used. */
export async function hubSettings(options: HubOptions = {}): Promise<HubSettings> {
  const env = options.env ?? process.env;
  const home =
    path(env.HF_HOME) ?? join(path(env.XDG_CACHE_HOME) ?? join(homedir(), ".cache"), "huggingface");
  return {
    cacheFolder: path(env.HF_HUB_CACHE) ?? path(env.HUGGINGFACE_HUB_CACHE) ?? join(home, "hub"),
    endpoint: endpoint(env.HF_ENDPOINT || "https://huggingface.co"),
    token: token(
      env.HF_TOKEN ||
        env.HUGGING_FACE_HUB_TOKEN ||
        (await tokenFile(path(env.HF_TOKEN_PATH) ?? join(home, "token"))),
    ),
    offline: /^(?:1|on|yes|true)$/i.test(env.HF_HUB_OFFLINE || env.TRANSFORMERS_OFFLINE || ""),
  };
}

function path(value: string | undefined): string | undefined {
  if (value === undefined || value === "") return undefined;
  return resolve(/^~(?=$|[/\\])/.test(value) ? homedir() + value.slice(1) : value);
}

function endpoint(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
    throw new UsageError(
      `HF_ENDPOINT: ${JSON.stringify(value)} is no http(s) address; unset it or write https://HOST`,
    );
  return value.replace(/\/+$/, "");
}

async function tokenFile(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch {
    return undefined;
  }
}

function token(value: string | undefined): string | undefined {
  const text = value?.trim();
  if (text === undefined || text === "") return undefined;
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new UsageError(
      "HF_TOKEN holds blanks or other characters that no token has; copy it again from the hub",
    );
  return text;
}
