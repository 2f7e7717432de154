/** The way not taken is tried again when that costs so small a part of the time since. */
const SHARE = 1 / 64;
/** The caller works alone only where that takes less than this part of the time. */
const GAIN = 0.8;
/** Waiting so many milliseconds for one another, and half of the time, is due to the machine, not to the program. */
const HELD_UP = 1;
/** Weight of a new measurement. */
const RATE = 0.25;

/** What runs took, and when the last one ended; both in milliseconds. */
interface Way {
  time: number;
  triedAt: number;
}

/**
 * Whether all threads run a program or the caller alone. Threads that wait for one another are slower than one where
 * something else keeps the processors busy: a thread that lost its processor holds up all at every join (measured beside
 * ten busy processes on two cores: 4 to 36 tokens/s with two threads, 340 with one). The result is the same either way.
 */
export class TeamSize {
  readonly #alone: Way = { time: Number.NaN, triedAt: 0 };
  readonly #together: Way = { time: Number.NaN, triedAt: 0 };
  #isAlone: boolean;
  #runs = 0;

  constructor(startsAlone: boolean) {
    this.#isAlone = startsAlone;
  }

  /** The way that pays at present. */
  get isAlone(): boolean {
    return this.#isAlone;
  }

  /** Whether threads wait for one another so long that other programs had better begin alone. */
  get heldUp(): boolean {
    const waits = this.#together.time - this.#alone.time;
    return this.#isAlone && waits > HELD_UP && waits > this.#alone.time;
  }

  /** Whether the run that begins now is to be the caller's alone. */
  choose(now: number): boolean {
    const other = this.#isAlone ? this.#together : this.#alone;
    const due = !(now - other.triedAt < other.time / SHARE);
    // The first run is cold, and tells nothing; the second is what others are compared with.
    return this.#runs >= 2 && due ? !this.#isAlone : this.#isAlone;
  }

  observe(alone: boolean, time: number, now: number): void {
    if (this.#runs++ === 0) return;
    const way = alone ? this.#alone : this.#together;
    const current = alone === this.#isAlone && !Number.isNaN(way.time);
    way.time = current ? way.time + RATE * (time - way.time) : time;
    way.triedAt = now;
    const [single, all] = [this.#alone.time, this.#together.time];
    if (single < (this.#isAlone ? 1 : GAIN) * all) this.#isAlone = true;
    else if (all <= single) this.#isAlone = false;
  }
}
