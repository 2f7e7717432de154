import { exp4, madd, tanh4 } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

// @ts-ignore: decorator
@inline
function silu4(x: v128): v128 {
  return f32x4.div(x, f32x4.add(f32x4.splat(1), exp4(f32x4.neg(x))));
}

// @ts-ignore: decorator
@inline
function geluTanh4(x: v128): v128 {
  const cube = f32x4.mul(f32x4.mul(x, x), x);
  const inner = f32x4.mul(madd(cube, f32x4.splat(0.044715), x), f32x4.splat(0.7978845608028654));
  return f32x4.mul(f32x4.mul(x, f32x4.splat(0.5)), f32x4.add(f32x4.splat(1), tanh4(inner)));
}

// @ts-ignore: decorator
@inline
function activate(kind: i32, x: v128): v128 {
  return kind == 0 ? silu4(x) : geluTanh4(x);
}

/** args: gate, up, out, count, kind (0 SiLU, 1 GELU by tanh) */
export function gate(args: usize, t: i32, n: i32): void {
  const gates = <usize>load<u32>(args);
  const up = <usize>load<u32>(args, 4);
  const out = <usize>load<u32>(args, 8);
  const count = load<i32>(args, 12);
  const kind = load<i32>(args, 16);
  const end = share(count, t + 1, n, 64);
  let i = share(count, t, n, 64);
  for (; i + 4 <= end; i += 4) {
    const at = <usize>i << 2;
    v128.store(out + at, f32x4.mul(activate(kind, v128.load(gates + at)), v128.load(up + at)));
  }
  for (; i < end; i++) {
    const at = <usize>i << 2;
    const value = activate(kind, f32x4.splat(load<f32>(gates + at)));
    store<f32>(out + at, f32x4.extract_lane(value, 0) * load<f32>(up + at));
  }
}
