/** Tiers of the group's calls: which of them may start, and what their failures mean for its end. */
import { Tiers, withFailures, type TierFailures, type TierMode } from "../answers/tiers.ts";
import type { ActiveRule, FailedSlot, GroupEnding, Rule, RuledGroup, RuleEffect, ShownByRules } from "./rule.ts";

/** How the tiers of its calls matter; absent = it has none. */
export type TiersFacts = { tiers?: TierMode };

export const tiers: Rule<TiersFacts, TiersFacts> = {
  stored: kept,
  again: kept,
  of: ({ tiers: mode }, group) => (mode === undefined ? null : new TiersRule(mode, group)),
};

function kept({ tiers: mode }: TiersFacts): TiersFacts {
  return mode === undefined ? {} : { tiers: mode };
}

export class TiersRule implements ActiveRule {
  readonly tiers: Tiers;
  readonly #group: RuledGroup;

  constructor(mode: TierMode, group: RuledGroup) {
    this.#group = group;
    // The tiers of a graph hold tasks back in its frontier.
    this.tiers = new Tiers(group.graph === null ? mode : "priority", group.header.count);
  }

  /** The failed slots by tier. A task of a graph that an alternative answers for has not failed. */
  get failures(): TierFailures {
    const { graph } = this.#group;
    return graph === null ? this.tiers.failures : withFailures(this.tiers.failures, graph.lostTasks());
  }

  /** A failed call of the most important tier is reported at once: a client that follows the log can react. */
  onFailure(failed: readonly FailedSlot[]): RuleEffect[] {
    return failed.flatMap(({ index, reason }) =>
      reason === null || this.tiers.tierOf(index) !== 0 ? [] : [{ kind: "escalated", index, reason }],
    );
  }

  /** A call of the most important tier has failed. */
  onGroupEnd({ isComplete, isCancelled }: GroupEnding): "escalated" | null {
    return !isComplete && !isCancelled && (this.failures.counts[0] ?? 0) > 0 ? "escalated" : null;
  }

  shown(): ShownByRules {
    return { tierFailures: this.failures };
  }
}
