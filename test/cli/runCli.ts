import { vi } from "vitest";
import { cli } from "../../src/cli/cli.ts";

/** Runs a command line in this process and returns what it wrote. */
export async function runCli(args: readonly string[], environment: Record<string, string> = {}) {
  let [stdout, stderr] = ["", ""];
  const out = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((text: string | Uint8Array, ...rest: unknown[]) => {
      stdout += text;
      const done = rest.at(-1) as (() => void) | undefined;
      done?.();
      return true;
    });
  const error = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    stderr += text;
    return true;
  });
  try {
    const code = await cli(args, environment);
    return { code, stdout, stderr };
  } finally {
    out.mockRestore();
    error.mockRestore();
  }
}
