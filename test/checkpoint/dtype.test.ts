import fc from "fast-check";
import { expect, test } from "vitest";
import { bytesOf, DTYPE_BYTES, type Dtype, fromFloat32, toFloat32 } from "../../src/checkpoint/dtype.ts";

function decode(dtype: Dtype, bytes: Uint8Array): Float32Array {
  const out = new Float32Array(bytes.length / DTYPE_BYTES[dtype]);
  toFloat32(dtype, bytes, out);
  return out;
}

/** Every 16-bit pattern. */
const patterns = Uint16Array.from({ length: 65536 }, (_, i) => i);

test("F16 decodes every pattern by its definition, and encodes it back", () => {
  const values = decode("F16", bytesOf(patterns));
  for (let code = 0; code < 65536; code++) {
    const [exponent, mantissa] = [(code >> 10) & 31, code & 1023];
    let magnitude = exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
    if (exponent === 31) magnitude = mantissa === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    if (!Object.is(values[code], code & 0x8000 ? -magnitude : magnitude))
      expect.unreachable(`pattern ${code}`);
  }
  const back = new Uint16Array(fromFloat32("F16", values).buffer);
  const isNaN16 = (code: number) => (code & 0x7fff) > 0x7c00;
  expect(back.filter((code, i) => code !== i && !(isNaN16(code) && isNaN16(i)))).toHaveLength(0);
});

test("BF16 is the upper half of a float32", () => {
  const back = new Uint16Array(fromFloat32("BF16", decode("BF16", bytesOf(patterns))).buffer);
  const isNaN16 = (code: number) => (code & 0x7fff) > 0x7f80;
  expect(back.filter((code, i) => code !== i && !(isNaN16(code) && isNaN16(i)))).toHaveLength(0);
});

test.each(["F16", "BF16"] as const)("%s rounds to nearest, ties to even", (dtype) => {
  const table = decode(dtype, bytesOf(patterns));
  fc.assert(
    fc.property(fc.float({ noNaN: true }), (value) => {
      const code = new Uint16Array(fromFloat32(dtype, Float32Array.of(value)).buffer)[0];
      if (!Number.isFinite(table[code])) return;
      const error = Math.abs(table[code] - value);
      for (const other of [code - 1, code + 1]) {
        if (!Number.isFinite(table[other])) continue;
        const distance = Math.abs(table[other] - value);
        expect(error < distance || (error === distance && (code & 1) === 0)).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});

test("the largest F16 is 65504, and 65520 becomes infinite", () => {
  const codes = new Uint16Array(
    fromFloat32("F16", Float32Array.of(65504, 65519, 65520, -65520, 2 ** -25, 2 ** -25 * 1.01)).buffer,
  );
  expect([...codes]).toEqual([0x7bff, 0x7bff, 0x7c00, 0xfc00, 0, 1]);
});

test("8-bit floats have the values of the OCP formats", () => {
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  const e4m3 = decode("F8_E4M3", all);
  expect([e4m3[0x7e], e4m3[0x01], e4m3[0x38], e4m3[0xb8]]).toEqual([448, 2 ** -9, 1, -1]);
  expect(e4m3[0x7f]).toBeNaN();
  const e5m2 = decode("F8_E5M2", all);
  expect([e5m2[0x7b], e5m2[0x01], e5m2[0x3c], e5m2[0x7c]]).toEqual([
    57344,
    2 ** -16,
    1,
    Number.POSITIVE_INFINITY,
  ]);
});

test("integers keep their sign, also from unaligned bytes", () => {
  const shifted = (array: ArrayBufferView) => {
    const bytes = bytesOf(array);
    const buffer = new Uint8Array(bytes.length + 1);
    buffer.set(bytes, 1);
    return buffer.subarray(1);
  };
  expect([...decode("I8", Uint8Array.of(255, 127))]).toEqual([-1, 127]);
  expect([...decode("U8", Uint8Array.of(255))]).toEqual([255]);
  expect([...decode("I16", shifted(Int16Array.of(-2, 5)))]).toEqual([-2, 5]);
  expect([...decode("U32", shifted(Uint32Array.of(2 ** 31)))]).toEqual([2 ** 31]);
  expect([...decode("I64", shifted(BigInt64Array.of(-3n, 2n ** 40n)))]).toEqual([-3, 2 ** 40]);
  expect([...decode("U64", bytesOf(BigUint64Array.of(2n ** 63n)))]).toEqual([2 ** 63]);
  expect([...decode("F64", shifted(Float64Array.of(0.5)))]).toEqual([0.5]);
});
