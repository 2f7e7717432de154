/** A piece of a backend's memory. Opaque: only the backend that made it can look inside. */
export interface Slot {
  readonly byteLength: number;
  /** Backend-specific place (an address, an index). */
  readonly place: number;
}

/** A part of a slot, for operations on some of its rows. */
export function slotPart(slot: Slot, byteOffset: number, byteLength: number): Slot {
  if (byteOffset < 0 || byteOffset + byteLength > slot.byteLength) {
    throw new RangeError(
      `part [${byteOffset}, ${byteOffset + byteLength}) leaves a slot of ${slot.byteLength} bytes`,
    );
  }
  return { place: slot.place + byteOffset, byteLength };
}
