import { BARRIER_COUNT, BARRIER_PHASE, MAY_WAIT } from "./opcodes";

/**
 * About 4 milliseconds, a scheduler's time slice. A join takes under a microsecond when everyone is running; beside
 * another busy process the one waited for may have lost its processor, and threads that sleep at once then meet so
 * seldom that decoding falls to a tenth (measured: 40 to 190 tokens/s against 1050).
 */
const SPINS = 16000000;

/** First unit of thread `t` when `units` are dealt to `n` threads in runs of `grain`. */
// @ts-ignore: decorator
@inline
export function share(units: i32, t: i32, n: i32, grain: i32): i32 {
  const grains = (units + grain - 1) / grain;
  return min(units, <i32>((<i64>grains * t) / n) * grain);
}

/** Thread `t` of `n` waits for the others. */
export function barrier(t: i32, n: i32): void {
  const phase = atomic.load<i32>(BARRIER_PHASE);
  if (atomic.add<i32>(BARRIER_COUNT, 1) == n - 1) {
    atomic.store<i32>(BARRIER_COUNT, 0);
    atomic.store<i32>(BARRIER_PHASE, phase + 1);
    atomic.notify(BARRIER_PHASE, n);
    return;
  }
  for (let i = 0; i < SPINS; i++) if (atomic.load<i32>(BARRIER_PHASE) != phase) return;
  waitWhile(BARRIER_PHASE, phase, t);
}

/** Sleeps until the word differs from `value`. Workers always may; the caller, thread 0, where its host lets it. */
export function waitWhile(address: usize, value: i32, t: i32): void {
  while (atomic.load<i32>(address) == value) {
    if (t || load<i32>(MAY_WAIT)) atomic.wait<i32>(address, value, -1);
  }
}
