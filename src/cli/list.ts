import { listCached } from "../checkpoint/hub/node.ts";
import type { hubFlags } from "./flags.ts";
import { formatBytes } from "./format.ts";
import { print, printJson, remark, table } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone list`: the models in the hub's cache. */
export async function list({ flags }: Invocation<typeof hubFlags>): Promise<void> {
  const models = await listCached();
  if (flags.json) {
    const rows = models.map(({ files: _, ...model }) => ({ ...model, format: model.format ?? null }));
    return printJson({ models: rows });
  }
  if (models.length === 0) return remark("The cache is empty; halftone pull OWNER/NAME fetches a model.");
  const rows = models.map(({ repository, commit, revisions, format, bytes, modified }) => [
    repository,
    revisions.join(",") || commit.slice(0, 12),
    format ?? "incomplete",
    formatBytes(bytes),
    modified.toISOString().slice(0, 10),
  ]);
  await print(table(["model", "revision", "format", "size", "modified"], rows, ["size"]));
}
