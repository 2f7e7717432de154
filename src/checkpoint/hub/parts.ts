/**
 * A large file cut into ranges that are fetched side by side, and the note that lets a later
 * process continue.
 *
 * @module
 */
import { isSize } from "./listing.ts";

/** A range of a file: `received` of `length` bytes from `start` on are on disk. */
export interface Part {
  readonly start: number;
  readonly length: number;
  received: number;
}

/** Cuts `size` bytes into parts of `partBytes`, the last one shorter. An empty file has no parts. */
export function planParts(size: number, partBytes: number): Part[] {
  const parts: Part[] = [];
  for (let start = 0; start < size; start += partBytes)
    parts.push({ start, length: Math.min(partBytes, size - start), received: 0 });
  return parts;
}

/** The note beside an unfinished file. */
export function writeNote(size: number, partBytes: number, parts: readonly Part[]): string {
  return JSON.stringify({ size, partBytes, received: parts.map((part) => part.received) });
}

/** The parts that a note describes; undefined when it is damaged or belongs to another size. */
export function readNote(text: string, size: number): { partBytes: number; parts: Part[] } | undefined {
  let note: { size?: unknown; partBytes?: unknown; received?: unknown };
  try {
    note = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { partBytes, received } = note ?? {};
  if (note?.size !== size || !isSize(partBytes) || partBytes === 0 || !Array.isArray(received))
    return undefined;
  if (received.length !== Math.ceil(size / partBytes)) return undefined;
  const parts = planParts(size, partBytes);
  for (const [i, part] of parts.entries()) {
    if (!isSize(received[i]) || received[i] > part.length) return undefined;
    part.received = received[i];
  }
  return { partBytes, parts };
}

/** Bytes on disk. */
export function receivedBytes(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.received, 0);
}
