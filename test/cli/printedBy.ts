import { vi } from "vitest";

/** What some work writes to stdout, which stays quiet. */
export async function printedBy(work: () => Promise<void>): Promise<string> {
  let text = "";
  const spy = vi.spyOn(process.stdout, "write").mockImplementation(((piece: string, done?: () => void) => {
    text += piece;
    done?.();
    return true;
  }) as typeof process.stdout.write);
  try {
    await work();
  } finally {
    spy.mockRestore();
  }
  return text;
}
