/**
 * Names of models on the Hugging Face hub: `OWNER/NAME[@REV][:QUANT]`.
 *
 * @module
 */
import { UsageError } from "../../errors.ts";

/** A parsed model id. */
export interface ModelId {
  /** `OWNER/NAME`. */
  readonly repository: string;
  /** Branch, tag, pull request (`refs/pr/1`) or commit; `main` when the text names none. */
  readonly revision: string;
  /** Which of several quantized files, as typed: `Q4_K_M`, `q4f16`. */
  readonly quant: string | undefined;
}

/** Longest `OWNER/NAME` that the hub allows. */
const MAX_REPOSITORY = 96;
const NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$/;
const REVISION = /^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,254}$/;
const QUANT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/**
 * Parses `OWNER/NAME[@REV][:QUANT]`. Nothing it accepts can name a place outside the cache.
 *
 * @throws UsageError that says which part is wrong.
 */
export function parseModelId(text: string): ModelId {
  const match = /^([^@:]*)(?:@([^:]*))?(?::(.*))?$/s.exec(text);
  if (match === null) throw invalid(text, "expected OWNER/NAME[@REVISION][:QUANT]");
  const [, repository, revision, quant] = match;
  const problem =
    repositoryProblem(repository) ??
    (revision === undefined || isRevision(revision)
      ? undefined
      : "the revision is not a branch, tag or commit") ??
    (quant === undefined || QUANT.test(quant) ? undefined : "the quantization is not a name such as Q4_K_M");
  if (problem !== undefined) throw invalid(text, problem);
  return { repository, revision: revision ?? "main", quant };
}

/** True when `text` has the form of a model id; a path that exists on disk should be tried first. */
export function isModelId(text: string): boolean {
  try {
    parseModelId(text);
    return true;
  } catch {
    return false;
  }
}

/** The id as text; the revision is left out when it is `main`. */
export function formatModelId(id: ModelId): string {
  const revision = id.revision === "main" ? "" : `@${id.revision}`;
  return `${id.repository}${revision}${id.quant === undefined ? "" : `:${id.quant}`}`;
}

/** True for a full commit hash (SHA-1, or SHA-256 in newer git). */
export function isCommit(text: string): boolean {
  return COMMIT.test(text);
}

/** True for a name that git allows for a branch, tag or commit and that stays below one folder as a path. */
export function isRevision(text: string): boolean {
  return (
    REVISION.test(text) && text.split("/").every((part) => part !== "" && !/^\.|\.$|\.\.|\.lock$/.test(part))
  );
}

function repositoryProblem(repository: string): string | undefined {
  const parts = repository.split("/");
  if (parts.length !== 2) return "a hub model is named OWNER/NAME";
  if (repository.length > MAX_REPOSITORY) return `OWNER/NAME is longer than ${MAX_REPOSITORY} characters`;
  for (const part of parts) {
    if (!NAME.test(part)) return `"${part}" holds other characters than letters, digits, "-", "_" and "."`;
    if (part.includes("..") || part.includes("--")) return `"${part}" holds ".." or "--"`;
  }
  return parts[1].endsWith(".git") ? 'the name ends in ".git"' : undefined;
}

function invalid(text: string, problem: string): UsageError {
  const shown = text.length > 120 ? `${text.slice(0, 120)}...` : text;
  return new UsageError(
    `${JSON.stringify(shown)} is no model id: ${problem}; write OWNER/NAME[@REVISION][:QUANT]`,
  );
}
