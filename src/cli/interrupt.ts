/**
 * From here on Ctrl-C aborts the signal instead of killing the process, so that the verb can clean up and
 * end with 130; a second Ctrl-C kills.
 */
export function interruptible(): AbortSignal {
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort());
  return controller.signal;
}
