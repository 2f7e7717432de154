import { END, NO_BARRIER } from "./opcodes.ts";

/** A value known when the program is complete, such as the address of its scratch memory. */
export interface Deferred {
  readonly resolve: () => number;
}

/** A place in the backend's memory. */
export type Address = number | Deferred;

export interface FloatArgument {
  readonly float: number;
}

/** Passed to the kernel as the bits of a 32-bit float. */
export function float(value: number): FloatArgument {
  return { float: value };
}

/** One call of a kernel. */
export interface Instruction {
  readonly code: number;
  readonly args: readonly (Address | FloatArgument)[];
  /**
   * Set when token t's row is computed by one thread from that token's row alone. Between two such
   * instructions over the same number of rows nobody has to wait.
   */
  readonly tokenRows?: number;
  /** The next instruction reads nothing that this one writes. */
  readonly independent?: boolean;
}

/** The program as words: code, length in words, flags, arguments; {@link END} ends it. */
export function encodeProgram(instructions: readonly Instruction[]): Uint32Array {
  const words: number[] = [];
  const bits = new DataView(new ArrayBuffer(4));
  instructions.forEach((instruction, i) => {
    const next = instructions[i + 1];
    const sameRows =
      next !== undefined && next.tokenRows !== undefined && instruction.tokenRows === next.tokenRows;
    const free = next !== undefined && (sameRows || instruction.independent === true);
    words.push(instruction.code, 3 + instruction.args.length, free ? NO_BARRIER : 0);
    for (const arg of instruction.args) {
      if (typeof arg === "number") words.push(arg);
      else if ("float" in arg) {
        bits.setFloat32(0, arg.float);
        words.push(bits.getUint32(0));
      } else words.push(arg.resolve());
    }
  });
  words.push(END);
  return Uint32Array.from(words, (word) => word >>> 0);
}
