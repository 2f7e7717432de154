import { BARRIER_COUNT, BARRIER_PHASE, MAY_WAIT } from "./opcodes";

/** About 100 microseconds: longer than the serial parts of a step. A thread that waits longer sleeps, so that a busy machine can run the one it waits for. */
const SPINS = 400000;

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
