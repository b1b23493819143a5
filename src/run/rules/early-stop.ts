/** `stop_when` by counting, voting or a pattern: the group stops once its answers so far meet the rule. */
import { EarlyStop, ruleText, type StopRule } from "../answers/early-stop.ts";
import { indexOf } from "../queue/slot.ts";
import { isAnswer, type ActiveRule, type EndedSlot, type Rule, type RuledGroup, type RuleEffect } from "./rule.ts";

/** When the group has what its client needs; absent = it runs to its end. */
export type EarlyStopFacts = { stopWhen?: StopRule };

export const earlyStop: Rule<EarlyStopFacts, EarlyStopFacts> = {
  stored: ({ stopWhen }) => (stopWhen === undefined ? {} : { stopWhen }),
  // Whoever retries a stopped group wants the calls that were cancelled.
  again: () => ({}),
  of: ({ stopWhen }, group) => (stopWhen === undefined ? null : new EarlyStopRule(stopWhen, group)),
  stopping: ({ stopWhen }) => stopWhen ?? null,
};

class EarlyStopRule implements ActiveRule {
  readonly mayStop = true;
  readonly #group: RuledGroup;
  readonly #stop: EarlyStop;

  constructor(rule: StopRule, group: RuledGroup) {
    this.#group = group;
    this.#stop = new EarlyStop(rule, group.header.count);
  }

  remembersEnds(): boolean {
    return !this.#group.hasStopped;
  }

  /** So many that no more answers come than it needs. A graph's tasks are no answers yet. */
  width(): number {
    const { rule, needed, isMet } = this.#stop;
    const { counts, graph } = this.#group;
    if (needed === null || isMet || rule.shadow || rule.hurry === true || graph !== null) return Infinity;
    // As many of them may fail as have failed so far.
    return needed + (counts.completed === 0 ? counts.failed : Math.ceil((needed * counts.failed) / counts.completed));
  }

  onSlotEnd(slot: EndedSlot): RuleEffect | null {
    if (this.#group.hasStopped || !isAnswer(this.#group, slot)) return null;
    this.#stop.completed(indexOf(slot.id), slot.text ?? "");
    return this.#stop.isMet ? { kind: "stop", rule: ruleText(this.#stop.rule) } : null;
  }
}
