import { convertCheckpoint } from "../checkpoint/convert.node.ts";
import { required } from "./files.ts";
import type { convertFlags } from "./flags.ts";
import { interruptible } from "./interrupt.ts";
import { openModel } from "./model.ts";
import { print, printJson } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** `halftone convert`: any model as a Hugging Face folder. */
export async function convert({ operands: [name], flags }: Invocation<typeof convertFlags>): Promise<void> {
  const folder = required(flags.output, "-o PATH");
  const checkpoint = await openModel(name);
  const { dtype } = flags;
  const signal = interruptible();
  try {
    await withProgress(`converting ${name}`, (line) =>
      convertCheckpoint(checkpoint, folder, {
        dtype,
        onTensor: (_, done, total) => {
          signal.throwIfAborted();
          line.update(done, total, `tensor ${done} of ${total}`);
        },
      }),
    );
    const tensors = checkpoint.tensors.size;
    if (flags.json) await printJson({ folder, dtype, tensors });
    else await print(`${folder}: ${tensors} tensors, ${dtype}\n`);
  } finally {
    await checkpoint.close();
  }
}
