/** The way not taken is tried again when that costs so small a part of the time that the program ran since. */
const SHARE = 1 / 64;
/** The same for a way never taken, which takes the threads' number times as long at most. */
const FIRST_SHARE = 1 / 8;
/** The caller works alone only where that takes less than this part of the time. */
const GAIN = 0.8;
/** Waiting so many milliseconds for one another, and half of the time, is due to the machine, not to the program. */
const HELD_UP = 1;
/** Part of a first run's time that it would take at least when it were not the first. */
const COLD = 1 / 8;
/** Weight of a new measurement, and how many times the mean it counts as at most: one run that was held up says little. */
const RATE = 0.25;
const MOST = 2;
/** Runs of a trial of all threads, of which the last counts: threads that slept wake in the first. */
const WAKING = 2;

/** Milliseconds that a run takes, and that runs took since the last one of this way. */
interface Way {
  time: number;
  since: number;
}

/**
 * Whether all threads run a program or the caller alone. Threads that wait for one another are slower than one where
 * something else keeps the processors busy: a thread that lost its processor holds up all at every join (measured beside
 * ten busy processes on two cores: 4 to 36 tokens/s with two threads, 340 with one). The result is the same either way.
 */
export class TeamSize {
  readonly #alone: Way = { time: Number.NaN, since: 0 };
  readonly #together: Way = { time: Number.NaN, since: 0 };
  readonly #threads: number;
  #isAlone: boolean;
  #runs = 0;
  /** Runs left of the trial under way. */
  #trial = 0;

  /** @param heldUp that of the program before: then this one begins alone, and stays so for a while. */
  constructor(threads: number, heldUp = 0) {
    this.#threads = threads;
    this.#isAlone = heldUp > 0;
    if (this.#isAlone) this.#together.time = heldUp;
  }

  /** The way that pays at present. */
  get isAlone(): boolean {
    return this.#isAlone;
  }

  /** Milliseconds of a run of all threads where they wait so long that other programs had better begin alone; else 0. */
  get heldUp(): number {
    const { time } = this.#together;
    const waits = time - this.#alone.time;
    return this.#isAlone && waits > HELD_UP && waits > this.#alone.time ? time : 0;
  }

  /** Whether the run that begins now is to be the caller's alone. */
  choose(): boolean {
    const runs = this.#isAlone ? WAKING : 1;
    const { time, since } = this.#isAlone ? this.#together : this.#alone;
    const wait = Number.isNaN(time)
      ? (this.#together.time * this.#threads) / FIRST_SHARE
      : (runs * time) / SHARE;
    if (this.#trial === 0 && since >= wait) this.#trial = runs;
    return this.#trial > 0 ? !this.#isAlone : this.#isAlone;
  }

  /** @param time milliseconds of a run that was made as {@link choose} said. */
  observe(alone: boolean, time: number): void {
    this.#alone.since += time;
    this.#together.since += time;
    if (this.#trial > 0 && --this.#trial > 0) return;
    const way = alone ? this.#alone : this.#together;
    const usual = alone === this.#isAlone && this.#runs > 2;
    if (this.#runs++ === 0) way.time = COLD * time;
    else way.time = usual ? way.time + RATE * (Math.min(time, MOST * way.time) - way.time) : time;
    way.since = 0;
    const [single, all] = [this.#alone.time, this.#together.time];
    if (single < (this.#isAlone ? 1 : GAIN) * all) this.#isAlone = true;
    else if (all <= single) this.#isAlone = false;
  }
}
