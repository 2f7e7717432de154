#!/usr/bin/env node
import { cli, report } from "./cli.ts";
import { endQuietlyOnClosedPipe } from "./output.ts";

const args = process.argv.slice(2);
endQuietlyOnClosedPipe();
// What nobody waits for, such as a thread that dies, ends the program in the same words.
process.on("uncaughtException", (error) => process.exit(report(error, args, process.env)));
process.exitCode = await cli(args, process.env);
