import type { Choice } from "../../budget/plan.ts";
import type { PlannableLayer } from "./layers.ts";

/** How long a machine takes for products of a model, see profile.ts. */
export interface CostProfile {
  /** Tokens, of as many sequences, in a step. */
  readonly batch: number;
  readonly threads: number;
  /** Everything of a step but the products: seconds. */
  readonly overheadSeconds: number;
  readonly times: readonly ProductTime[];
}

/** Seconds of one product of a weight [rows, columns] with the `batch` tokens of a step. */
export interface ProductTime {
  readonly rows: number;
  readonly columns: number;
  readonly scheme: string;
  readonly seconds: number;
}

/** Looks up a profile's times. */
export class Costs {
  readonly profile: CostProfile;
  readonly #seconds: ReadonlyMap<string, number>;

  constructor(profile: CostProfile) {
    this.profile = profile;
    this.#seconds = new Map(
      profile.times.map(({ rows, columns, scheme, seconds }) => [`${rows} ${columns} ${scheme}`, seconds]),
    );
  }

  /**
   * Seconds that layers fused into one matrix add to a step; undefined when nobody measured it. An embedding that is
   * not the head too takes no time: one row is read.
   */
  secondsOf(set: readonly PlannableLayer[], scheme: string, headIsTied: boolean): number | undefined {
    if (set.length === 1 && set[0].role === "embedding" && !headIsTied) return 0;
    const rows = set.reduce((sum, layer) => sum + layer.rows, 0);
    return this.#seconds.get(`${rows} ${set[0].columns} ${scheme}`);
  }

  /** Seconds of a step; undefined when the profile lacks one of its products. */
  stepSeconds(
    choice: readonly Choice[],
    layers: readonly PlannableLayer[],
    headIsTied: boolean,
  ): number | undefined {
    const byName = new Map(layers.map((layer) => [layer.name, layer]));
    let sum = this.profile.overheadSeconds;
    for (const { layers: names, option } of choice) {
      const seconds = this.secondsOf(
        names.map((name) => byName.get(name)!),
        option,
        headIsTied,
      );
      if (seconds === undefined) return undefined;
      sum += seconds;
    }
    return sum;
  }
}
