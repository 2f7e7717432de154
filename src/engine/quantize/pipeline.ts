/**
 * Starts work on items ahead of its consumer, at most `limit` at a time, and gives the results in the items' order:
 * threads stay busy, memory stays bounded.
 */
export async function* pipeline<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
  start: (item: T) => Promise<R>,
): AsyncGenerator<[T, R]> {
  const started: [T, Promise<R>][] = [];
  for await (const item of items) {
    const result = start(item);
    // Several are under way when one fails: how the others end is nobody's concern.
    result.catch(() => undefined);
    started.push([item, result]);
    if (started.length >= limit) {
      const [first, result] = started.shift()!;
      yield [first, await result];
    }
  }
  for (const [item, result] of started) yield [item, await result];
}
