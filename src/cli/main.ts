#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { cli, report } from "./cli.ts";
import { endQuietlyOnClosedPipe } from "./output.ts";

// Generation leaves little garbage behind: a young generation that stays small saves 14 of 113 MB (MiniMind2, NUQ-4).
setFlagsFromString("--semi-space-growth-factor=1");
const args = process.argv.slice(2);
endQuietlyOnClosedPipe();
// What nobody waits for, such as a thread that dies, ends the program in the same words.
process.on("uncaughtException", (error) => process.exit(report(error, args, process.env)));
process.exitCode = await cli(args, process.env);
