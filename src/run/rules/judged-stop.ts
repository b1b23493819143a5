/** `stop_when` by a judge: it is shown the answers so far, and its calls serve the group (../services/judge.ts). */
import { JudgedStop, type JudgeRule } from "../answers/judged-stop.ts";
import { indexOf } from "../queue/slot.ts";
import {
  isAnswer,
  type ActiveRule,
  type EndedSlot,
  type Rule,
  type RuledGroup,
  type RuleEffect,
  type ShownByRules,
} from "./rule.ts";

/** The judge that decides whether the group has what its client needs; absent = none does. */
export type JudgedStopFacts = { judgeWhen?: JudgeRule };

export const judgedStop: Rule<JudgedStopFacts, JudgedStopFacts> = {
  stored: ({ judgeWhen }) => (judgeWhen === undefined ? {} : { judgeWhen }),
  // Whoever retries a stopped group wants the calls that were cancelled.
  again: () => ({}),
  of: ({ judgeWhen }, group) => (judgeWhen === undefined ? null : new JudgedStopRule(judgeWhen, group)),
  stopping: ({ judgeWhen }) => judgeWhen ?? null,
};

const SERVED: RuleEffect = { kind: "served" };

export class JudgedStopRule implements ActiveRule {
  /** What the judge is asked, and when. */
  readonly judged: JudgedStop;
  readonly #group: RuledGroup;

  constructor(rule: JudgeRule, group: RuledGroup) {
    this.#group = group;
    this.judged = new JudgedStop(rule, group.header.count);
  }

  remembersEnds(): boolean {
    return !this.#group.hasStopped;
  }

  onSlotEnd(slot: EndedSlot): RuleEffect | null {
    if (this.#group.hasStopped || !isAnswer(this.#group, slot)) return null;
    const index = indexOf(slot.id);
    const id = this.#group.graph?.taskOf(index).id ?? null;
    this.judged.completed({ index, id, completed: true, text: slot.text ?? "" });
    return SERVED;
  }

  shown(): ShownByRules {
    return { judges: this.judged.groups };
  }
}
