/** Longest stretch of computing before timers, signals and other readers get a turn. */
const STRETCH_MS = 20;

/** A function to call between steps: now and then it lets the host's event loop run, without the delay of a timer. */
export function breather(): () => Promise<void> {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < STRETCH_MS) return;
    await nextTurn();
    last = performance.now();
  };
}

function nextTurn(): Promise<void> {
  if (typeof setImmediate === "function") return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
