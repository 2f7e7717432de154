/**
 * Codebooks for pairs of Gaussians by Lloyd's iteration.
 *
 * @module
 */
import { NearestPoint } from "../src/quantizers/nearest.ts";

/** The plastic number: its inverse powers make the most even two-dimensional additive sequence. */
const plastic = 1.324717957244746;

/** `count` points that cover the plane as the standard Gaussian does, the same at every run (quasi-Monte Carlo). */
export function gaussianCover(count: number): Float64Array {
  const samples = new Float64Array(2 * count);
  for (let i = 0; i < count; i++) {
    const u = (0.5 + i / plastic) % 1;
    const v = (0.5 + i / plastic ** 2) % 1;
    const radius = Math.sqrt(-2 * Math.log(1 - u));
    samples[2 * i] = radius * Math.cos(2 * Math.PI * v);
    samples[2 * i + 1] = radius * Math.sin(2 * Math.PI * v);
  }
  return samples;
}

/**
 * `count` centroids of the samples. Starts from a sunflower spiral whose density follows the square root of the
 * Gaussian's, the best for many points, so that few iterations of k-means end near the optimum.
 */
export function planarKMeans(count: number, samples: Float64Array, iterations: number): Float32Array {
  const golden = Math.PI * (3 - Math.sqrt(5));
  let points = new Float32Array(2 * count);
  for (let i = 0; i < count; i++) {
    const radius = Math.sqrt(-4 * Math.log(1 - (i + 0.5) / count));
    points[2 * i] = radius * Math.cos(i * golden);
    points[2 * i + 1] = radius * Math.sin(i * golden);
  }
  for (let iteration = 0; iteration < iterations; iteration++) {
    const nearest = new NearestPoint(points);
    const sums = new Float64Array(2 * count);
    const members = new Float64Array(count);
    for (let i = 0; i < samples.length; i += 2) {
      const point = nearest.find(samples[i], samples[i + 1]);
      sums[2 * point] += samples[i];
      sums[2 * point + 1] += samples[i + 1];
      members[point]++;
    }
    const last = points;
    points = Float32Array.from(sums, (sum, i) => (members[i >> 1] > 0 ? sum / members[i >> 1] : last[i]));
  }
  return points;
}
