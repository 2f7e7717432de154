import { type Candidates, keepCandidates } from "./candidates.ts";

/**
 * Min-p sampling (Nguyen et al., arXiv:2407.01082): keeps tokens at least `minP` times as likely as the most
 * likely one. Weights are relative to that one already.
 */
export function applyMinP(candidates: Candidates, minP: number): void {
  if (minP > 0) keepCandidates(candidates, (weight) => weight >= minP);
}
