import { spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** What stdin holds. Default nothing. */
  readonly stdin?: string;
  /** Sends SIGINT when this comes out on stdout or stderr. */
  readonly interruptAt?: string;
  /** Sends SIGINT when this file or folder appears. */
  readonly interruptAtFile?: string;
  /** Stops reading stdout after so many bytes. */
  readonly readAtMost?: number;
}

/** Runs the command line as a program, without the environment of whoever tests. */
export async function halftone(args: readonly string[], surroundings: Surroundings = {}): Promise<Outcome> {
  const { env = {}, stdin = "", interruptAt, interruptAtFile, readAtMost = Infinity } = surroundings;
  const { PATH, TMPDIR } = process.env;
  const child = spawn(process.execPath, [`${root}src/cli/main.ts`, ...args], {
    cwd: root,
    env: { PATH, TMPDIR, HALFTONE_THREADS: "1", NODE_NO_WARNINGS: "1", ...env },
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const texts = { stdout: "", stderr: "" };
  let interrupted = false;
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (piece: string) => {
      texts[name] += piece;
      if (interruptAt !== undefined && !interrupted && texts[name].includes(interruptAt)) {
        interrupted = child.kill("SIGINT");
      }
      if (name === "stdout" && texts.stdout.length >= readAtMost) child.stdout.destroy();
    });
  }
  const watcher = interruptAtFile === undefined ? undefined : watch(dirname(interruptAtFile));
  watcher?.on("change", (_, name) => {
    if (!interrupted && name === basename(interruptAtFile!)) interrupted = child.kill("SIGINT");
  });
  const [code] = await once(child, "close");
  watcher?.close();
  return { code, ...texts };
}

/** The one JSON document on stdout; fails on anything beside it. */
export async function halftoneJson(args: readonly string[], surroundings?: Surroundings) {
  const { code, stdout, stderr } = await halftone([...args, "--json"], surroundings);
  if (code !== 0 || stderr !== "") throw new Error(`halftone ${args.join(" ")}: ${code} ${stderr}`);
  return JSON.parse(stdout);
}
