/** A vote of the group's answers without whose decision the group ends as `escalated` (`aggregate.escalate`). */
import { partsOf } from "../../answer.ts";
import type { AggregateSpec } from "../answers/aggregate.ts";
import { Ballot, type BallotRule } from "../answers/ballot.ts";
import { votedText } from "../answers/voted-text.ts";
import { indexOf } from "../queue/slot.ts";
import type { ActiveRule, EndedSlot, GroupEnding, Rule } from "./rule.ts";

export type BallotRequest = { aggregate?: AggregateSpec };

/** Absent = no vote decides how the group ends. */
export type BallotFacts = { ballot?: BallotRule };

export const ballot: Rule<BallotRequest, BallotFacts> = {
  stored({ aggregate }) {
    if (aggregate?.strategy !== "vote" || aggregate.escalatesGroup !== true) return {};
    const { strategy: _, escalatesGroup: __, escalate: ___, ...rule } = aggregate;
    return { ballot: rule };
  },
  again: ({ ballot: rule }) => (rule === undefined ? {} : { ballot: rule }),
  of: ({ ballot: rule }) => (rule === undefined ? null : new VoteOfGroup(rule)),
};

class VoteOfGroup implements ActiveRule {
  readonly #ballot: Ballot;

  constructor(rule: BallotRule) {
    this.#ballot = new Ballot(rule);
  }

  remembersEnds(): boolean {
    return true;
  }

  /** A slot that was cancelled or skipped is no member. */
  onSlotEnd(slot: EndedSlot): null {
    const { id, state, text } = slot;
    if (state !== "completed" && state !== "failed") return null;
    const voted = votedText({ text: text ?? "", ...partsOf(slot) });
    this.#ballot.add({ index: indexOf(id), id: null, completed: state === "completed", text: voted });
    return null;
  }

  /** The vote of a cancelled group says nothing. */
  onGroupEnd({ isCancelled }: GroupEnding): "undecided" | null {
    return isCancelled || this.#ballot.result.decided ? null : "undecided";
  }
}
