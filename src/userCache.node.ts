/**
 * The user's cache, where what was measured on this machine stays.
 *
 * @module
 */
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** `$XDG_CACHE_HOME/halftone`, else `~/.cache/halftone`. */
export function userCache(env = process.env): string {
  return join(env.XDG_CACHE_HOME ? resolve(env.XDG_CACHE_HOME) : join(homedir(), ".cache"), "halftone");
}
