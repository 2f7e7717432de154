import { pull } from "../checkpoint/hub/node.ts";
import type { hubFlags } from "./flags.ts";
import { interruptible } from "./interrupt.ts";
import { withHubProgress } from "./model.ts";
import { print, printJson } from "./output.ts";
import type { Invocation } from "./verb.ts";

/** `halftone pull`: brings a model into the hub's cache. */
export async function pullVerb({ operands: [id], flags }: Invocation<typeof hubFlags>): Promise<void> {
  const model = await withHubProgress(id, (options) => pull(id, options), { signal: interruptible() });
  if (flags.json) return printJson(model);
  await print(
    `${model.id} at ${model.commit.slice(0, 12)}, ${model.format}\n${model.file ?? model.folder}\n`,
  );
}
