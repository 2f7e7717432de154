import { concatenate } from "../llama2c/file.ts";

/** A protobuf field of wire type 2. */
export function field(number: number, payload: Uint8Array | string): Uint8Array {
  const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  return concatenate(Uint8Array.of(number * 8 + 2, ...varint(bytes.length)), bytes);
}

/** A protobuf field of wire type 0. */
function integer(number: number, value: number): Uint8Array {
  return Uint8Array.of(number * 8, ...varint(value));
}

/** NodeProto; an attribute is a number, or the nodes of a graph. */
export function node(
  op: string,
  name: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, number | readonly Uint8Array[]>> = {},
): Uint8Array {
  const encoded = Object.entries(attributes).map(([key, value]) => {
    const content =
      typeof value === "number"
        ? integer(3, value)
        : field(6, concatenate(...value.map((inner) => field(1, inner))));
    return field(5, concatenate(field(1, key), content));
  });
  return concatenate(
    ...inputs.map((input) => field(1, input)),
    ...outputs.map((output) => field(2, output)),
    field(3, name),
    field(4, op),
    ...encoded,
  );
}

/** TensorProto with raw data: floats, or bytes. */
export function initializer(
  name: string,
  shape: readonly number[],
  values: Float32Array<ArrayBuffer> | Uint8Array,
): Uint8Array {
  const isFloat = values instanceof Float32Array;
  const raw = isFloat ? new Uint8Array(values.buffer) : values;
  const type = integer(2, isFloat ? 1 : 2);
  return concatenate(...shape.map((size) => integer(1, size)), type, field(8, name), field(9, raw));
}

/** ModelProto of nodes and initializers. */
export function model(nodes: readonly Uint8Array[], initializers: readonly Uint8Array[]): Uint8Array {
  return field(
    7,
    concatenate(...nodes.map((each) => field(1, each)), ...initializers.map((each) => field(5, each))),
  );
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}
