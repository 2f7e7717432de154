/**
 * What an answer of the hub means for the user.
 *
 * @module
 */
import { HalftoneError, UsageError } from "../../errors.ts";

/** What was asked for. */
export interface Subject {
  readonly repository: string;
  readonly revision: string;
  /** Path in the repository; undefined for the listing. */
  readonly file?: string;
}

/** Worth another try: a cut, a stall, a busy server. Never leaves the hub code. */
export class TransientFailure extends Error {
  /** Milliseconds that the server asked to wait. */
  readonly waitMs: number | undefined;

  constructor(problem: string, options: { waitMs?: number; cause?: unknown } = {}) {
    super(problem, { cause: options.cause });
    this.waitMs = options.waitMs;
  }
}

/** How to call the subject in messages: `OWNER/NAME@REV: FILE`. */
export function subjectName(subject: Subject): string {
  return `${subject.repository}@${subject.revision}${subject.file === undefined ? "" : `: ${subject.file}`}`;
}

/** Statuses after which the same request may succeed. */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501);
}

/** The error for a final status of the hub itself. `hasToken`: a token was sent. */
export function statusError(
  status: number,
  headers: Headers,
  subject: Subject,
  endpoint: string,
  hasToken: boolean,
): HalftoneError {
  const name = subjectName(subject);
  const code = headers.get("x-error-code");
  const page = `${endpoint}/${subject.repository}`;
  if (status === 404 || code === "RepoNotFound" || code === "RevisionNotFound" || code === "EntryNotFound") {
    if (code === "RevisionNotFound")
      return new UsageError(
        `${name}: the repository has no revision "${subject.revision}"; see ${page}/tree/main`,
      );
    if (subject.file !== undefined)
      return new UsageError(`${name}: no such file (404); see ${page}/tree/main`);
    const remedy = hasToken ? "the token in HF_TOKEN may not see it" : "for a private one set HF_TOKEN";
    return new UsageError(
      `${name}: no such repository or revision (${status}); check the name at ${page}, ${remedy}`,
    );
  }
  if (status === 401 || status === 403) {
    const problem = hasToken ? "the token in HF_TOKEN has no access" : "access needs a token";
    return new UsageError(
      `${name}: ${problem} (${status}); accept the model's licence at ${page} and set HF_TOKEN to a token of ${endpoint}/settings/tokens`,
    );
  }
  return new HalftoneError(
    `${name}: the server answered ${status}; try again later or check HF_ENDPOINT (${endpoint})`,
  );
}

/**
 * How long the server asks to wait, in milliseconds: Retry-After in seconds or as a date, or the `t` of the
 * hub's RateLimit header. Undefined when it does not say.
 */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const text = headers.get("retry-after")?.trim();
  if (text !== undefined && /^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = text === undefined ? Number.NaN : Date.parse(text);
  if (!Number.isNaN(date)) return Math.max(0, date - now);
  const reset = /(?:^|;)\s*t=(\d{1,9})/.exec(headers.get("ratelimit") ?? "");
  return reset === null ? undefined : Number(reset[1]) * 1000;
}
