import { expect, it } from "vitest";
import { encodeProgram, float } from "../../src/backends/wasm/instruction.ts";
import { END, NO_BARRIER } from "../../src/backends/wasm/opcodes.ts";
import { Scratch } from "../../src/backends/wasm/scratch.ts";

it("encodes code, length, flags and arguments, then the end", () => {
  const deferred = { resolve: () => 4096 };
  const words = encodeProgram([
    { code: 7, args: [1, -1, float(1.5), deferred] },
    { code: 9, args: [] },
  ]);
  expect([...words]).toEqual([7, 7, 0, 1, 0xffffffff, 0x3fc00000, 4096, 9, 3, 0, END]);
  expect([...encodeProgram([])]).toEqual([END]);
});

it("joins threads after each instruction, unless the next works on the same rows or on nothing of it", () => {
  const flags = (...list: { tokenRows?: number; independent?: boolean }[]) => {
    const words = encodeProgram(list.map((each) => ({ code: 1, args: [], ...each })));
    return list.map((_, i) => words[3 * i + 2]);
  };
  expect(flags({ tokenRows: 4 }, { tokenRows: 4 }, { tokenRows: 2 })).toEqual([NO_BARRIER, 0, 0]);
  expect(flags({ independent: true }, {}, {})).toEqual([NO_BARRIER, 0, 0]);
  // The last instruction always joins, or the caller would return too early.
  expect(flags({}, { independent: true, tokenRows: 1 })).toEqual([0, 0]);
});

it("gives every thread a piece of scratch that no other reaches, whatever instruction it is at", () => {
  const scratch = new Scratch(3);
  const pieces = [100, 1000, 64].map((bytes) => ({ bytes, place: scratch.perThread(bytes) }));
  const other = scratch.shared("other", 10);
  const sizes: number[] = [];
  scratch.place((byteLength) => sizes.push(byteLength) * 100_000);
  const ranges = pieces.flatMap(({ bytes, place: [address, stride] }) =>
    [0, 1, 2].map((thread) => ({
      ...{ thread, start: address.resolve() + thread * stride.resolve() },
      end: address.resolve() + thread * stride.resolve() + bytes,
    })),
  );
  for (const a of ranges) {
    expect(a.end).toBeLessThanOrEqual(pieces[0].place[0].resolve() + sizes[0]);
    for (const b of ranges) {
      if (a.thread !== b.thread) expect(a.end <= b.start || b.end <= a.start).toBe(true);
    }
  }
  expect(other.resolve()).not.toBe(pieces[0].place[0].resolve());
});
