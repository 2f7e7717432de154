/** Looks up the merge of two adjacent symbols. */
export interface PairTable {
  /** The rank of merging `left` and `right`, or -1 where no such merge exists. */
  rank(left: number, right: number): number;
}

/**
 * A hash table from pairs of token ids to ranks, in flat arrays: 150,000 merges take 4 MB
 * where a Map keyed by strings takes 32. Of a pair listed twice the first rank counts.
 */
export function createPairTable(lefts: Int32Array, rights: Int32Array): PairTable {
  const capacity = 1 << Math.ceil(Math.log2(Math.max(2, lefts.length * 2)));
  const mask = capacity - 1;
  const slots = new Int32Array(capacity).fill(-1);

  function slotOf(left: number, right: number): number {
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    let slot = (hash ^ (hash >>> 13)) & mask;
    for (let rank = slots[slot]; rank !== -1; rank = slots[slot]) {
      if (lefts[rank] === left && rights[rank] === right) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  for (let rank = 0; rank < lefts.length; rank++) {
    const slot = slotOf(lefts[rank], rights[rank]);
    if (slots[slot] === -1) slots[slot] = rank;
  }
  return { rank: (left, right) => slots[slotOf(left, right)] };
}
