/**
 * What the objects that feed providers' batches must be told: that slots of a group wait for one, and that a group was stopped.
 * In memory: a run object that restarts tells it again, which changes nothing.
 */
import type { EngineState } from "../../../src/engine/state.ts";

/** The run: its open groups, by number. */
type Groups = { engine: Pick<EngineState, "groups">; openGroups: ReadonlyMap<number, unknown> };

export type ProviderNotice = { seq: number; stops: boolean };

export class ProviderNotices {
  /** By group, what its object knows. */
  readonly #told = new Map<number, ProviderNotice["stops"]>();

  /** What no object knows yet. */
  *due({ engine, openGroups }: Groups): Generator<ProviderNotice> {
    for (const seq of openGroups.keys()) {
      const group = engine.groups.get(seq);
      if (group === undefined || group.provider === null || group.provider.size === 0) continue;
      const stops = group.drained !== null;
      const isReady = group.mayStart || group.provider.hasClaimed;
      if (isReady && this.#told.get(seq) !== stops) yield { seq, stops };
    }
  }

  isDue(groups: Groups): boolean {
    return this.due(groups).next().done !== true;
  }

  told({ seq, stops }: ProviderNotice): void {
    this.#told.set(seq, stops);
  }

  forget(seq: number): void {
    this.#told.delete(seq);
  }
}
