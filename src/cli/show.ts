import { type CachedRepository, showCached } from "../checkpoint/hub/node.ts";
import type { hubFlags } from "./flags.ts";
import { formatBytes } from "./format.ts";
import { print, printJson, table } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone show`: what the hub's cache holds of one model. */
export async function show({ operands: [id], flags }: Invocation<typeof hubFlags>): Promise<void> {
  const cached = await showCached(id);
  await (flags.json ? printJson(cached) : print(describe(cached)));
}

function describe({ repository, folder, bytes, snapshots, unfinished }: CachedRepository): string {
  const parts = [`${repository}: ${formatBytes(bytes)} in ${folder}\n`];
  for (const { commit, revisions, format, files } of snapshots) {
    const names = revisions.length === 0 ? "" : ` (${revisions.join(", ")})`;
    parts.push(`\n${commit}${names}, ${format ?? "incomplete"}\n`);
    const rows = files.map((file) => [file.path, formatBytes(file.bytes)]);
    parts.push(table(["file", "size"], rows, ["size"]));
  }
  for (const { blob, receivedBytes, totalBytes } of unfinished) {
    const received = `${formatBytes(receivedBytes)} of ${formatBytes(totalBytes)}`;
    parts.push(`\nunfinished ${blob.slice(0, 12)}: ${received}; the next pull goes on\n`);
  }
  return parts.join("");
}
