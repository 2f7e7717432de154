/**
 * Where policy maps are kept, and which machine this is.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { arch, cpus, platform } from "node:os";
import { join } from "node:path";
import { availableSimd, kernelBinary } from "../backends/wasm/module.ts";
import { HalftoneError, UsageError } from "../errors.ts";
import { replaceFile } from "../replaceFile.node.ts";
import { userCache } from "../userCache.node.ts";
import type { PolicyMap, PolicyOrigin } from "./policyFile.ts";
import { foreignness, mergeMaps } from "./policyMap.ts";

/** This machine, this build, this many threads. */
export function originHere(threads: number): PolicyOrigin {
  const processors = cpus();
  const machine = `${processors[0]?.model.trim() ?? "unknown"}, ${processors.length} cores, ${platform()} ${arch()}`;
  const simd = availableSimd();
  const build = simd ? `${simd} ${fingerprint(kernelBinary(simd))}` : "none";
  return { machine, engine: `kernels ${build}, V8 ${process.versions.v8}`, threads };
}

/** The file of the cache that holds what was tuned here. */
function policyFile(origin: PolicyOrigin, env = process.env): string {
  return join(userCache(env), `policy-${fingerprint(JSON.stringify(origin))}.json`);
}

/** A map to use, or why there is none. */
export interface FoundPolicy {
  readonly map?: PolicyMap;
  /** One line for the user. */
  readonly notice?: string;
}

/**
 * The map of `file` or, without one, of the cache. One from elsewhere is set aside with a notice, and so is a damaged one
 * of the cache. Throws a UsageError or HalftoneError when a file that was asked for cannot be read.
 */
export async function findPolicy(
  origin: PolicyOrigin,
  file?: string,
  env = process.env,
): Promise<FoundPolicy> {
  const path = file ?? policyFile(origin, env);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (file === undefined) return {};
    throw new UsageError(`--policy ${file}: cannot be read; name a file that halftone tune --json wrote`, {
      cause,
    });
  }
  try {
    const { parsePolicyMap } = await import("./policyFile.ts");
    const map = parsePolicyMap(text, path);
    const reason = foreignness(map, origin);
    return reason === undefined ? { map } : { notice: `${path}: ${reason}; set aside` };
  } catch (error) {
    if (file !== undefined || !(error instanceof HalftoneError)) throw error;
    return { notice: `${error.message}; set aside` };
  }
}

/** Adds a map to the cache. Returns its file. */
export async function keepPolicy(map: PolicyMap, env = process.env): Promise<string> {
  const { machine, engine, threads } = map;
  const path = policyFile({ machine, engine, threads }, env);
  const { map: older } = await findPolicy(map, undefined, env);
  await replaceFile(path, JSON.stringify(mergeMaps(older, map)));
  return path;
}

/** Whether this is the first time that tuning is offered on this machine, which it remembers. */
export async function isFirstOffer(env = process.env): Promise<boolean> {
  try {
    await mkdir(userCache(env), { recursive: true });
    await writeFile(join(userCache(env), "tune-offered"), "", { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

function fingerprint(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex").slice(0, 12);
}
