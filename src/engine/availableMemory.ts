/** Bytes that this process may still take; unlimited where the host does not tell, as browsers do not. */
export function availableMemory(): number {
  const { process } = globalThis as { process?: { availableMemory?: () => number } };
  return process?.availableMemory?.() ?? Number.POSITIVE_INFINITY;
}
