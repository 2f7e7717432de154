import { UsageError } from "../errors.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Whether sequences begin with the beginning-of-sequence token: as the tokenizer's config says, or regardless. */
export type BosRule = "auto" | "always" | "never";

/** The token that sequences begin with by a rule, if any. Throws a UsageError when the tokenizer lacks it. */
export function bosBy(
  rule: BosRule,
  { addBos, bosId }: Pick<Tokenizer, "addBos" | "bosId">,
): number | undefined {
  if (rule === "never" || (rule === "auto" && !addBos)) return undefined;
  if (bosId !== undefined) return bosId;
  throw new UsageError("this tokenizer has no beginning-of-sequence token; use --bos never");
}
