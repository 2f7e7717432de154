/** A priority queue of merges: lowest rank first, leftmost position first among equals. */
export interface MergeQueue {
  push(rank: number, position: number): void;
  /** Removes the first entry and returns true, leaving it in `rank` and `position`; false when empty. */
  pop(): boolean;
  readonly rank: number;
  readonly position: number;
}

const POSITIONS = 2 ** 31;

/** A binary heap over doubles: rank (below 2^21) times 2^31 plus position is exact in 53 bits. */
export function createMergeQueue(): MergeQueue {
  let heap = new Float64Array(64);
  let size = 0;
  const queue = { push, pop, rank: 0, position: 0 };

  function push(rank: number, position: number): void {
    if (size === heap.length) {
      const larger = new Float64Array(size * 2);
      larger.set(heap);
      heap = larger;
    }
    const key = rank * POSITIONS + position;
    let index = size++;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent] <= key) break;
      heap[index] = heap[parent];
      index = parent;
    }
    heap[index] = key;
  }

  function pop(): boolean {
    if (size === 0) return false;
    const first = heap[0];
    const key = heap[--size];
    let index = 0;
    for (let child = 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && heap[child + 1] < heap[child]) child++;
      if (heap[child] >= key) break;
      heap[index] = heap[child];
      index = child;
    }
    heap[index] = key;
    queue.rank = Math.floor(first / POSITIONS);
    queue.position = first - queue.rank * POSITIONS;
    return true;
  }

  return queue;
}
