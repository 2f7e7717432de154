/**
 * Packs the tokens of many short requests into full steps: each request in a sequence of its own, what its
 * continuations share computed once.
 *
 * @module
 */

/** Token ids that several continuations follow. None of them may be empty. */
export interface ScoreRequest {
  readonly prefix: readonly number[];
  readonly continuations: readonly (readonly number[])[];
}

/** A token whose probability is asked for: `id`, the next one of a request's continuation. */
export interface Target {
  readonly request: number;
  readonly continuation: number;
  readonly id: number;
}

/** One step; `targets[i]` are those of the i-th of the last `targets.length` tokens. */
export interface Batch {
  readonly ids: number[];
  readonly positions: number[];
  readonly sequences: number[];
  /** Positions of the longest of its requests. */
  readonly length: number;
  readonly targets: Target[][];
  /** Requests whose last token is in this step. */
  readonly finished: number;
}

/** A run of tokens at consecutive positions. */
interface Segment {
  readonly ids: readonly number[];
  readonly position: number;
  readonly targets: readonly (Target[] | undefined)[];
}

/** What a sequence has yet to compute: the rest of a request, `done` tokens into its first segment. */
interface Lane {
  segments: Segment[];
  done: number;
  length: number;
}

/** Positions that a request takes up: nothing is predicted from a continuation's last token. */
export function positionsOf({ prefix, continuations }: ScoreRequest): number {
  return prefix.length + Math.max(...continuations.map(({ length }) => length)) - 1;
}

/** Steps of at most `size` tokens over `sequences` sequences. */
export function* batches(
  requests: readonly ScoreRequest[],
  size: number,
  sequences: number,
): Generator<Batch, void, undefined> {
  const lanes = Array.from({ length: sequences }, (): Lane => ({ segments: [], done: 0, length: 0 }));
  let next = 0;
  for (;;) {
    const tokens: { id: number; position: number; sequence: number; targets: Target[] | undefined }[] = [];
    let [finished, length] = [0, 0];
    for (const [sequence, lane] of lanes.entries()) {
      if (tokens.length === size) break;
      if (lane.segments.length === 0) {
        if (next === requests.length) continue;
        lane.length = positionsOf(requests[next]);
        lane.segments = segmentsOf(requests[next], next++);
      }
      length = Math.max(length, lane.length);
      const [{ ids, position, targets }] = lane.segments;
      const end = Math.min(ids.length, lane.done + size - tokens.length);
      for (let i = lane.done; i < end; i++) {
        tokens.push({ id: ids[i], position: position + i, sequence, targets: targets[i] });
      }
      lane.done = end;
      if (end < ids.length) continue;
      // The next segment overwrites this one's positions, so it has to wait for the next step.
      lane.segments.shift();
      lane.done = 0;
      if (lane.segments.length === 0) finished++;
    }
    if (tokens.length === 0) return;
    const wanted = tokens.filter(({ targets }) => targets !== undefined);
    const ordered = [...tokens.filter(({ targets }) => targets === undefined), ...wanted];
    yield {
      ids: ordered.map(({ id }) => id),
      positions: ordered.map(({ position }) => position),
      sequences: ordered.map(({ sequence }) => sequence),
      length,
      targets: wanted.map(({ targets }) => targets!),
      finished,
    };
  }
}

/** The prefix with its first continuation, then the others over the same positions. */
function segmentsOf({ prefix, continuations }: ScoreRequest, request: number): Segment[] {
  const target = (continuation: number, i: number): Target => ({
    request,
    continuation,
    id: continuations[continuation][i],
  });
  const segments = continuations.map((ids, c): Segment => {
    const targets = ids.slice(1).map((_, i) => [target(c, i + 1)]);
    return { ids: ids.slice(0, -1), position: prefix.length, targets };
  });
  const [first, ...others] = segments;
  const silent = new Array<undefined>(prefix.length - 1).fill(undefined);
  const firsts = continuations.map((_, c) => target(c, 0));
  return [
    { ids: [...prefix, ...first.ids], position: 0, targets: [...silent, firsts, ...first.targets] },
    ...others.filter(({ ids }) => ids.length > 0),
  ];
}
