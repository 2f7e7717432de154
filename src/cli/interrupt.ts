/**
 * From here on Ctrl-C aborts the signal instead of killing the process, so that the verb can clean up and
 * end with 130; a second Ctrl-C kills. All who ask before it comes share one signal.
 */
export function interruptible(): AbortSignal {
  for (const listener of process.listeners("SIGINT")) {
    if (SHARED in listener) return listener[SHARED] as AbortSignal;
  }
  const controller = new AbortController();
  process.once(
    "SIGINT",
    Object.assign(() => controller.abort(), { [SHARED]: controller.signal }),
  );
  return controller.signal;
}

/** Marks our listener. */
const SHARED = Symbol("interrupt");
