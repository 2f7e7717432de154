import { tanh4 } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/** args: input, count, limit */
export function softcap(args: usize, t: i32, n: i32): void {
  const input = <usize>load<u32>(args);
  const count = load<i32>(args, 4);
  const limit = load<f32>(args, 8);
  const inverse = f32x4.splat(1 / limit);
  const end = share(count, t + 1, n, 64);
  let i = share(count, t, n, 64);
  for (; i + 4 <= end; i += 4) {
    const at = input + ((<usize>i) << 2);
    v128.store(at, f32x4.mul(f32x4.splat(limit), tanh4(f32x4.mul(v128.load(at), inverse))));
  }
  for (; i < end; i++) {
    const at = input + ((<usize>i) << 2);
    const value = tanh4(f32x4.mul(f32x4.splat(load<f32>(at)), inverse));
    store<f32>(at, limit * f32x4.extract_lane(value, 0));
  }
}
