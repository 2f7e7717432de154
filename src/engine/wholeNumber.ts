import { UsageError } from "../errors.ts";

/** Throws a UsageError unless an option is a whole number from 1 to `most`. */
export function checkWhole(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new UsageError(`${name} ${value}: takes a whole number from 1 to ${most}`);
}
