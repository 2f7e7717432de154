import type { Model } from "../engine/model.ts";
import { type PerplexityResult, perplexity } from "../engine/perplexity.ts";
import { readTextFile, required } from "./files.ts";
import type { perplexityFlags } from "./flags.ts";
import { formatSeconds } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { type LoadFlags, loadModel } from "./model.ts";
import { print, printJson } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** `halftone perplexity`: how well a model predicts a text. */
export async function perplexityVerb({
  operands: [name],
  flags,
}: Invocation<typeof perplexityFlags>): Promise<void> {
  const text = await readTextFile(required(flags.text, "--text FILE"), "--text");
  const model = await loadModel(name, flags);
  const against = flags.against === undefined ? undefined : await loadAgainst(flags.against, flags, model);
  const { context, windows, bos, json } = flags;
  try {
    const result = await withProgress("scoring", (line) =>
      perplexity(model, text, {
        ...{ context, windows, bos, against, signal: interruptible() },
        onProgress: (done, total, soFar) =>
          line.update(done, total, `window ${done} of ${total}, perplexity ${soFar.toFixed(3)}`),
      }),
    );
    if (json) return await printJson(result);
    await print(
      `perplexity ${result.perplexity.toFixed(3)}, ${result.bitsPerByte.toFixed(4)} bits per byte\n` +
        `${result.tokens} tokens in ${result.windows} windows of ${result.context}` +
        `${result.bos ? ", each after BOS" : ""}, in ${formatSeconds(result.seconds)}\n${comparison(result)}`,
    );
  } finally {
    model.dispose();
    against?.dispose();
  }
}

async function loadAgainst(name: string, flags: LoadFlags, model: Model): Promise<Model> {
  try {
    return await loadModel(name, flags);
  } catch (error) {
    model.dispose();
    throw error;
  }
}

function comparison({ meanKlDivergence, klDivergence99, topAgreement }: PerplexityResult): string {
  if (meanKlDivergence === undefined) return "";
  return (
    `KL divergence ${meanKlDivergence.toFixed(5)}, 99th percentile ${klDivergence99!.toFixed(4)}; ` +
    `same top token ${(100 * topAgreement!).toFixed(2)}%\n`
  );
}
