import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packCodes, packedRowBytes, unpackCodes } from "../../src/quantizers/packing.ts";
import { randomWord } from "../../src/quantizers/random.ts";

function randomCodes(count: number, bits: number, seed: number): Uint16Array {
  return Uint16Array.from({ length: count }, (_, i) => randomWord(seed, i) >>> (32 - bits));
}

describe("packing", () => {
  it("starts at the least significant bit", () => {
    const bytes = new Uint8Array(2);
    packCodes([0b101, 0b001, 0b111, 0b010], 3, bytes);
    expect([...bytes]).toEqual([0b11001101, 0b0101]);
  });

  it("is undone by unpacking, at any width and place", () => {
    const arguments_ = [fc.integer({ min: 1, max: 16 }), fc.nat(70), fc.nat(5), fc.integer()] as const;
    fc.assert(
      fc.property(...arguments_, (bits, count, offset, seed) => {
        const codes = randomCodes(count, bits, seed);
        const bytes = new Uint8Array(offset + packedRowBytes(count, bits) + 1);
        packCodes(codes, bits, bytes, offset);
        const back = new Uint16Array(count);
        unpackCodes(bytes, bits, back, offset);
        expect(back).toEqual(codes);
        expect(bytes.subarray(0, offset).every((b) => b === 0)).toBe(true);
        expect(bytes.at(-1)).toBe(0);
      }),
    );
  });

  it("packs in pieces as in one", () => {
    for (let bits = 1; bits <= 16; bits++) {
      const codes = randomCodes(33, bits, bits);
      const whole = new Uint8Array(packedRowBytes(33, bits));
      packCodes(codes, bits, whole);
      const pieces = new Uint8Array(whole.length);
      for (const [from, to] of [
        [0, 1],
        [1, 18],
        [18, 33],
      ]) {
        packCodes(codes.subarray(from, to), bits, pieces, 0, from * bits);
      }
      expect(pieces).toEqual(whole);
    }
  });
});
