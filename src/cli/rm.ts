import { removeCached } from "../checkpoint/hub/node.ts";
import type { hubFlags } from "./flags.ts";
import { formatBytes } from "./format.ts";
import { print, printJson } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone rm`: removes a model from the hub's cache. */
export async function rm({ operands: [id], flags }: Invocation<typeof hubFlags>): Promise<void> {
  const { removed, freedBytes } = await removeCached(id);
  if (flags.json) return printJson({ removed, freedBytes });
  await print(`${removed.map((path) => `removed ${path}\n`).join("")}${formatBytes(freedBytes)} freed\n`);
}
