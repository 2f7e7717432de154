import { afterEach, expect, it } from "vitest";
import { interruptible } from "../../src/cli/interrupt.ts";

const before = process.listeners("SIGINT");
afterEach(() => {
  for (const listener of process.listeners("SIGINT")) {
    if (!before.includes(listener)) process.removeListener("SIGINT", listener);
  }
});

it("all who ask share one signal, until it comes", () => {
  const signals = Array.from({ length: 30 }, interruptible);
  expect(new Set(signals).size).toBe(1);
  expect(process.listenerCount("SIGINT")).toBe(before.length + 1);
  const ours = process.listeners("SIGINT").at(-1)!;
  process.removeListener("SIGINT", ours);
  ours("SIGINT");
  expect(signals[0].aborted).toBe(true);
  expect(interruptible().aborted).toBe(false);
});
