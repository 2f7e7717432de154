import fc from "fast-check";
import { expect, test } from "vitest";
import { batches, positionsOf, type ScoreRequest } from "../../../src/engine/evaluate/batcher.ts";

const ids = (max: number) => fc.array(fc.nat(99), { minLength: 1, maxLength: max });
const request: fc.Arbitrary<ScoreRequest> = fc.record({
  prefix: ids(40),
  continuations: fc.array(ids(12), { minLength: 1, maxLength: 3 }),
});

test("every target is predicted from exactly its prefix and the continuation so far", () => {
  fc.assert(
    fc.property(
      fc.array(request, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 64 }),
      fc.integer({ min: 1, max: 5 }),
      (requests, size, sequences) => {
        // What a cache holds: token ids by sequence and position.
        const cache = Array.from({ length: sequences }, (): number[] => []);
        const scored = requests.map(({ continuations }) => continuations.map((): number[] => []));
        let finished = 0;
        for (const batch of batches(requests, size, sequences)) {
          const rows = batch.ids.length;
          expect(rows).toBeGreaterThan(0);
          expect(rows).toBeLessThanOrEqual(size);
          const places = new Set(batch.sequences.map((sequence, i) => `${sequence} ${batch.positions[i]}`));
          expect(places.size).toBe(rows);
          batch.ids.forEach((id, i) => {
            cache[batch.sequences[i]][batch.positions[i]] = id;
          });
          batch.targets.forEach((targets, i) => {
            const row = rows - batch.targets.length + i;
            const seen = cache[batch.sequences[row]].slice(0, batch.positions[row] + 1);
            for (const { request: r, continuation: c, id } of targets) {
              const done = scored[r][c];
              expect(seen).toEqual([...requests[r].prefix, ...done]);
              expect(batch.length).toBeGreaterThanOrEqual(positionsOf(requests[r]));
              done.push(id);
            }
          });
          finished += batch.finished;
        }
        expect(scored).toEqual(requests.map(({ continuations }) => continuations));
        expect(finished).toBe(requests.length);
      },
    ),
    { numRuns: 200 },
  );
});

test("what continuations share is computed once", () => {
  const prefix = Array.from({ length: 20 }, (_, i) => i);
  const steps = [...batches([{ prefix, continuations: [[1, 2, 3], [4, 5], [6]] }], 64, 1)];
  expect(steps.map((step) => step.ids.length)).toEqual([22, 1]);
});
