/**
 * Notices for the objects that feed providers' batches: slots of a group wait for a batch, or a group was stopped.
 * In memory only: a run object that restarts sends them again, which changes nothing.
 */
import type { EngineState } from "../../../src/run/state.ts";

/** The run: its open groups, by number. */
type Groups = { engine: Pick<EngineState, "groups">; openGroups: ReadonlyMap<number, unknown> };

export type ProviderNotice = { seq: number; stops: boolean };

export class ProviderNotices {
  /** By group, the last notice that was sent to its object. */
  readonly #sent = new Map<number, ProviderNotice["stops"]>();

  /** Notices that were not sent yet. */
  *due({ engine, openGroups }: Groups): Generator<ProviderNotice> {
    for (const seq of openGroups.keys()) {
      const group = engine.groups.get(seq);
      if (group === undefined || group.provider === null || group.provider.size === 0) continue;
      const stops = group.drained !== null;
      const isReady = group.mayStart || group.provider.hasClaimed;
      if (isReady && this.#sent.get(seq) !== stops) yield { seq, stops };
    }
  }

  isDue(groups: Groups): boolean {
    return this.due(groups).next().done !== true;
  }

  sent({ seq, stops }: ProviderNotice): void {
    this.#sent.set(seq, stops);
  }

  forget(seq: number): void {
    this.#sent.delete(seq);
  }
}
