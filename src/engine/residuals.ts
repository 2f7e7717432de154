import type { Backend } from "../backends/backend.ts";
import type { ChannelSelection, Compensation, ResidualHandle } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { ResidualGroup } from "../compensation/groups.ts";
import { type InputProfile, magnitudeOfRank } from "../compensation/profile.ts";
import { layersKey, type ResidualFile } from "../compensation/residualFile.ts";
import { type ChannelShares, type CompensationSettings, channelsOf } from "../compensation/settings.ts";
import { UsageError } from "../errors.ts";
import type { LinearSpec } from "../models/decoder.ts";

/** A group's residual in a backend. */
export interface LoadedResidual {
  readonly group: ResidualGroup;
  readonly handle: ResidualHandle;
}

/** What quantizing took from a decoder's layers, and what is known of their inputs. */
export class Residuals {
  /** Bytes held in the backend's memory. */
  readonly byteLength: number;
  readonly groups: readonly LoadedResidual[];
  /** See {@link layersKey}. */
  readonly key: string;
  /** Channels that the model was planned with. */
  readonly channels: ChannelShares | undefined;
  /** Whether rows stay in the file and are read at each step. */
  readonly inFile: boolean;
  readonly #byMember = new Map<LinearSpec, LoadedResidual>();
  readonly #profiles = new Map<ResidualGroup, { profile: InputProfile; energies: Slot }>();
  readonly #backend: Backend;
  readonly #file: ResidualFile;

  private constructor(groups: readonly LoadedResidual[], backend: Backend, file: ResidualFile) {
    this.groups = groups;
    this.key = layersKey(file);
    this.channels = file.channels;
    this.inFile = file.groups.some(({ source }) => source.file !== undefined);
    this.#backend = backend;
    this.#file = file;
    this.byteLength = groups.reduce((sum, { handle }) => sum + handle.byteLength, 0);
    for (const residual of groups) {
      for (const member of residual.group.members) this.#byMember.set(member, residual);
    }
  }

  /** Makes a residual file ready in a backend; it stays open where its rows stay in it. */
  static async load(file: ResidualFile, backend: Backend): Promise<Residuals> {
    const groups: LoadedResidual[] = [];
    for (const { group, source } of file.groups) {
      groups.push({ group, handle: await backend.loadResidual(source) });
    }
    return new Residuals(groups, backend, file);
  }

  /** The residual of layers that share an input; undefined when none of them is quantized. */
  of(specs: readonly LinearSpec[]): LoadedResidual | undefined {
    return specs.map((spec) => this.#byMember.get(spec)).find((found) => found !== undefined);
  }

  /** How the layers of an input are compensated; undefined when no channel is. */
  compensation(
    { group, handle }: LoadedResidual,
    { channels: shares, select, readers }: CompensationSettings,
    outputOf: (member: LinearSpec) => Slot,
  ): Compensation | undefined {
    const channels = channelsOf(group.columns, shares[group.kind]);
    if (channels === 0) return undefined;
    const selection = this.#selection(group, select, channels);
    return { residual: handle, channels, selection, outputs: group.members.map(outputOf), readers };
  }

  /** Notes what the inputs of a group are like, for selections that ask for it. */
  learn(group: ResidualGroup, profile: InputProfile): void {
    const energies = this.#profiles.get(group)?.energies ?? this.#backend.reserve(group.columns * 4);
    this.#backend.upload(energies, profile.energies);
    this.#profiles.set(group, { profile, energies });
  }

  /** What was learnt of a group's inputs. */
  profileOf(group: ResidualGroup): InputProfile | undefined {
    return this.#profiles.get(group)?.profile;
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  #selection(
    group: ResidualGroup,
    select: CompensationSettings["select"],
    channels: number,
  ): ChannelSelection {
    if (select === "exact") return { by: "magnitude" };
    if (select === "random") return { by: "random", seed: 0 };
    const known = this.#profiles.get(group);
    if (!known) {
      throw new UsageError(
        `--select ${select} needs to know the layers' inputs; give a text to learn them from (--profile FILE)`,
      );
    }
    if (select === "static") return { by: "energy", energies: known.energies };
    const { profile } = known;
    return { by: "buckets", largest: profile.largest, usual: magnitudeOfRank(profile, channels) };
  }
}
