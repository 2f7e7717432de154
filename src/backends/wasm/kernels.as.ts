// The module that every thread instantiates over one shared memory: an interpreter of recorded
// programs, whose instructions call the kernels of `ops/`.

import { add, addBias } from "../../ops/add/wasm.as";
import { attention } from "../../ops/attention/wasm.as";
import { placeRows } from "../../ops/compensate/places.as";
import { addResidual, fetchResidual } from "../../ops/compensate/rows.as";
import { selectChannels } from "../../ops/compensate/select.as";
import { embed } from "../../ops/embed/wasm.as";
import { gate } from "../../ops/gate/wasm.as";
import { gram, gramPack } from "../../ops/gram/wasm.as";
import { linearByteInt8 } from "../../ops/linear/byteInt8.as";
import { linearFieldsFloat, linearTilesFloat } from "../../ops/linear/decoded.as";
import { linearFieldsDirect } from "../../ops/linear/directProducts.as";
import { linearFieldsInt8 } from "../../ops/linear/fieldProducts.as";
import { linearF16, linearF32 } from "../../ops/linear/float.as";
import { addHalves } from "../../ops/linear/halves.as";
import { linearNibbleDirect } from "../../ops/linear/nibbleDirect.as";
import { linearNibbleInt8 } from "../../ops/linear/nibbleInt8.as";
import { linearPlanes } from "../../ops/linear/planeProducts.as";
import { quantize } from "../../ops/linear/quantize.as";
import { rotate } from "../../ops/linear/rotate.as";
import { rmsNorm } from "../../ops/rmsNorm/wasm.as";
import { ropeStore } from "../../ops/ropeStore/wasm.as";
import { softcap } from "../../ops/softcap/wasm.as";
import { suppress } from "../../ops/suppress/wasm.as";
import * as op from "./opcodes";
import { barrier, waitWhile } from "./parallel.as";

export { packBitPlanes, packDirect, packFields } from "../../ops/linear/fieldPack.as";
export { narrowToHalf, packBytes, packNibbles } from "../../ops/linear/pack.as";

/** Between tokens a worker spins this often before it sleeps; waking one costs about 40 microseconds. */
const IDLE_SPINS = 400000;

/** First free byte after the module's static data. */
export function heapBase(): usize {
  return __heap_base;
}

function execute(program: usize, t: i32, n: i32): void {
  let at = program;
  let code = load<i32>(at);
  while (code != op.END) {
    const args = at + 12;
    if (code == op.RMS_NORM) rmsNorm(args, t, n);
    else if (code == op.LINEAR_NIBBLE_DIRECT) linearNibbleDirect(args, t, n);
    else if (code == op.LINEAR_FIELDS_DIRECT) linearFieldsDirect(args, t, n);
    else if (code == op.LINEAR_PLANES) linearPlanes(args, t, n);
    else if (code == op.LINEAR_NIBBLE_INT8) linearNibbleInt8(args, t, n);
    else if (code == op.LINEAR_BYTE_INT8) linearByteInt8(args, t, n);
    else if (code == op.LINEAR_F32) linearF32(args, t, n);
    else if (code == op.LINEAR_F16) linearF16(args, t, n);
    else if (code == op.LINEAR_FIELDS_INT8) linearFieldsInt8(args, t, n);
    else if (code == op.LINEAR_FIELDS_FLOAT) linearFieldsFloat(args, t, n);
    else if (code == op.LINEAR_TILES_FLOAT) linearTilesFloat(args, t, n);
    else if (code == op.ROTATE) rotate(args, t, n);
    else if (code == op.QUANTIZE) quantize(args, t, n);
    else if (code == op.ROPE_STORE) ropeStore(args, t, n);
    else if (code == op.ATTENTION) attention(args, t, n);
    else if (code == op.GATE) gate(args, t, n);
    else if (code == op.ADD_HALVES) addHalves(args, t, n);
    else if (code == op.ADD) add(args, t, n);
    else if (code == op.ADD_BIAS) addBias(args, t, n);
    else if (code == op.SELECT_CHANNELS) selectChannels(args, t, n);
    else if (code == op.ADD_RESIDUAL) addResidual(args, t, n);
    else if (code == op.PLACE_ROWS) placeRows(args, t, n);
    else if (code == op.FETCH_RESIDUAL) fetchResidual(args, t, n);
    else if (code == op.EMBED) embed(args, t, n);
    else if (code == op.SOFTCAP) softcap(args, t, n);
    else if (code == op.SUPPRESS) suppress(args, t, n);
    else if (code == op.GRAM_PACK) gramPack(args, t, n);
    else if (code == op.GRAM) gram(args, t, n);
    else if (code == op.READ_STREAM) readStream(args, t, n);
    else unreachable();
    const join = n > 1 && !(load<i32>(at, 8) & op.NO_BARRIER);
    at += (<usize>load<i32>(at, 4)) << 2;
    // Read before the join: after the last one the caller may free the program.
    code = load<i32>(at);
    if (join) barrier(t, n);
  }
}

/** Runs a program with all threads; the caller is thread 0. */
export function run(program: usize): void {
  const n = load<i32>(op.THREADS);
  // Nothing in an empty program would make the caller wait for the others.
  if (load<i32>(program) == op.END) return;
  if (n > 1) {
    store<u32>(op.PROGRAM, <u32>program);
    atomic.add<i32>(op.GENERATION, 1);
    if (atomic.load<i32>(op.SLEEPERS)) atomic.notify(op.GENERATION, n);
  }
  execute(program, 0, n);
}

/**
 * Life of a worker thread: waits for the next generation, runs its share, until the program is 0. What it has
 * seen is kept in memory: Node 20's compiler loses the first increment of a local that lives across the loop,
 * and the thread would then run a step ahead of the others.
 */
export function work(t: i32): void {
  const seen = <usize>op.SEEN + (<usize>t << 2);
  for (;;) {
    let spins = IDLE_SPINS;
    while (spins-- > 0 && atomic.load<i32>(op.GENERATION) == load<i32>(seen)) {}
    if (atomic.load<i32>(op.GENERATION) == load<i32>(seen)) {
      atomic.add<i32>(op.SLEEPERS, 1);
      waitWhile(op.GENERATION, load<i32>(seen), t);
      atomic.sub<i32>(op.SLEEPERS, 1);
    }
    store<i32>(seen, load<i32>(seen) + 1);
    const program = <usize>load<u32>(op.PROGRAM);
    if (!program) return;
    execute(program, t, load<i32>(op.THREADS));
  }
}

/** args: address, bytes, result. Reads memory as fast as the machine can: the bound that products are measured against. */
function readStream(args: usize, t: i32, n: i32): void {
  const bytes = load<i32>(args, 4) >>> 8;
  const share = bytes / n;
  let at = <usize>load<u32>(args) + <usize>(share * t) * 256;
  const end = at + <usize>share * 256;
  let a = i32x4.splat(0),
    b = a,
    c = a,
    d = a;
  while (at < end) {
    for (let i: usize = 0; i < 256; i += 64) {
      a = v128.or(a, v128.load(at + i));
      b = v128.or(b, v128.load(at + i, 16));
      c = v128.or(c, v128.load(at + i, 32));
      d = v128.or(d, v128.load(at + i, 48));
    }
    at += 256;
  }
  v128.store(<usize>load<u32>(args, 8) + ((<usize>t) << 4), v128.or(v128.or(a, b), v128.or(c, d)));
}
