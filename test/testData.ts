import { existsSync } from "node:fs";
import { join } from "node:path";

const root = process.env.HALFTONE_TEST_DATA;

/**
 * Path of a model or text that the repository does not carry, below HALFTONE_TEST_DATA;
 * undefined (after one line on stderr) where it is absent, so that the test can skip itself.
 */
export function testData(relativePath: string): string | undefined {
  const path = root === undefined ? undefined : join(root, relativePath);
  if (path !== undefined && existsSync(path)) return path;
  console.error(`skipped: ${relativePath} needs HALFTONE_TEST_DATA (now ${root ?? "unset"})`);
  return undefined;
}
