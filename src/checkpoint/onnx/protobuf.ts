import { CheckpointError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";

/** Field header: tag and length, two varints of at most 10 bytes. */
const MAX_HEADER_BYTES = 20;
/** Fields of one message that are walked: an export of a language model has some ten thousand. */
const MAX_FIELDS = 300_000;
/** Small, so that stepping over weights reads little of them. */
const WINDOW_BYTES = 4096;

/** A field of a message that lies in a source. Length-delimited payloads are not read. */
export interface Field {
  readonly number: number;
  /** Varint value; 0 for other wire types. */
  readonly value: number;
  /** Payload range in the source. */
  readonly start: number;
  readonly end: number;
  /** Wire type 2: a string, bytes, packed list or message. */
  readonly delimited: boolean;
}

/**
 * Walks the fields of a protobuf message in [start, end) of a source by ranged reads,
 * stepping over payloads. Source: https://protobuf.dev/programming-guides/encoding/.
 */
export async function* walkMessage(source: ByteSource, start: number, end: number): AsyncGenerator<Field> {
  let window: Uint8Array = new Uint8Array(0);
  let windowStart = 0;
  let at = start;
  const fail = (problem: string, offset: number): never => {
    throw new CheckpointError(source.name, `broken protobuf: ${problem}`, { offset });
  };
  const varint = (): number => {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (at >= end) fail("a number runs past the end of its message", at);
      const byte = window[at - windowStart];
      at++;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    return fail("a number of more than 10 bytes", at);
  };
  for (let fields = 0; at < end; fields++) {
    if (fields >= MAX_FIELDS) fail(`more than ${MAX_FIELDS} fields in a message`, at);
    if (at < windowStart || Math.min(at + MAX_HEADER_BYTES, end) > windowStart + window.length) {
      window = await source.read(at, Math.min(WINDOW_BYTES, end - at));
      windowStart = at;
    }
    const fieldStart = at;
    const tag = varint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (number === 0) fail("field number 0", fieldStart);
    if (wireType === 0) {
      const valueStart = at;
      const value = varint();
      yield { number, value, start: valueStart, end: at, delimited: false };
      continue;
    }
    let length = 0;
    if (wireType === 2) length = varint();
    else if (wireType === 1) length = 8;
    else if (wireType === 5) length = 4;
    else fail(`wire type ${wireType}`, fieldStart);
    if (length > end - at) fail(`a field of ${length} bytes leaves its message`, fieldStart);
    yield { number, value: 0, start: at, end: at + length, delimited: wireType === 2 };
    at += length;
  }
}
