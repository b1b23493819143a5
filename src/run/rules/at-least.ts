/** `at_least`: the share of the group's slots that must complete for it to end as completed. */
import { MISSING_LISTED_MAX } from "../../limits.ts";
import type { ActiveRule, GroupEnding, Rule, RuledGroup, ShownByRules } from "./rule.ts";

/** Absent = all of them must. */
export type AtLeastFacts = { atLeast?: number };

export const atLeast: Rule<AtLeastFacts, AtLeastFacts> = {
  stored: kept,
  again: kept,
  of: ({ atLeast: share }, group) => (share === undefined ? null : new AtLeastRule(share, group)),
};

function kept({ atLeast: share }: AtLeastFacts): AtLeastFacts {
  return share === undefined ? {} : { atLeast: share };
}

class AtLeastRule implements ActiveRule {
  readonly #share: number;
  readonly #group: RuledGroup;

  constructor(share: number, group: RuledGroup) {
    this.#share = share;
    this.#group = group;
  }

  onGroupEnd({ isCancelled, answered, expected }: GroupEnding): "completed" | null {
    // Divided, because a product like 0.7 * 10 is above 7.
    return !isCancelled && answered / expected >= this.#share ? "completed" : null;
  }

  /** The slots that did not complete, in order; the first of them. */
  shown(): ShownByRules {
    const { header, done } = this.#group;
    if (!done) return {};
    const missing: number[] = [];
    for (let index = 0; index < header.count && missing.length < MISSING_LISTED_MAX; index++)
      if (this.#group.isWanted(index) && this.#group.stateOf(index) !== "completed") missing.push(index);
    return { missing };
  }
}
