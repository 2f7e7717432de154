/** Trials that count: about as many as tokens in a few sentences. */
const MEMORY = 48;
/** What is believed before the first trial, as if this many had been made. */
const PRIOR_TRIALS = 2;
const PRIOR_RATE = 0.75;

/** The running probability that the next token of a draft is accepted when all before it were. */
export class AcceptanceRate {
  #accepted = 0;
  #trials = 0;

  get value(): number {
    return (this.#accepted + PRIOR_TRIALS * PRIOR_RATE) / (this.#trials + PRIOR_TRIALS);
  }

  /** A draft of which `accepted` tokens were accepted and, unless it was `whole`, the next one rejected. */
  observe(accepted: number, whole: boolean): void {
    const trials = accepted + (whole ? 0 : 1);
    this.fade(trials);
    this.#accepted += accepted;
    this.#trials += trials;
  }

  /** Forgets a little, as after so many trials: a drafter that failed is tried again some day. */
  fade(trials: number): void {
    const kept = (1 - 1 / MEMORY) ** trials;
    this.#accepted *= kept;
    this.#trials *= kept;
  }
}
