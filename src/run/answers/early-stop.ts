/**
 * When a group has what its client needs, so that the rest need not run. The verdict depends on which answers there are, not
 * on their order: after a restart it follows from the stored ones.
 */
import type { Comparison } from "../../call.ts";
import { PATTERN_ANSWER_STEPS_MIN, PATTERN_GROUP_STEPS_MAX, PATTERN_STEPS_MAX } from "../../limits.ts";
import { compilePattern, type Pattern } from "../../text/pattern/pattern.ts";
import { voteOf } from "./comparison.ts";
import { Tally } from "./tally.ts";

/** As a client's `stop_when` names it, and as a group's row keeps it. */
export type StopRule = (
  | { kind: "n_success"; n: number }
  /** At least `of` answers have voted, and a share of at least `agree` of all votes is for one answer. */
  | { kind: "quorum"; of: number; agree: number; comparison: Comparison }
  | { kind: "regex"; source: string; flags: string }
) & {
  /** Whether the group runs on, and only reports what the stop would have saved. */
  shadow: boolean;
  /** Whether the group keeps its full width near its end; absent = it does not. */
  hurry?: true;
} & InFlightRule;

/** What becomes of the attempts in flight; absent = each ends by itself, unless it is stuck or free. */
export type InFlightRule = { inFlight?: "finish" | "abort" };

export class EarlyStop {
  readonly rule: StopRule;
  readonly #tally = new Tally();
  readonly #pattern: Pattern | null;
  #completed = 0;
  #isMet = false;

  /** Steps that the rule's pattern may take in one answer. */
  readonly #stepsMax: number;

  /** `count`: the calls of the group. */
  constructor(rule: StopRule, count: number) {
    this.rule = rule;
    const share = Math.floor(PATTERN_GROUP_STEPS_MAX / Math.max(1, count));
    this.#stepsMax = Math.min(PATTERN_STEPS_MAX, Math.max(PATTERN_ANSWER_STEPS_MIN, share));
    const compiled = rule.kind === "regex" ? compilePattern(rule.source, rule.flags) : null;
    this.#pattern = compiled?.ok === true ? compiled.pattern : null;
  }

  /** Takes the answer of a slot that has completed. */
  completed(index: number, text: string): void {
    this.#completed += 1;
    if (this.#isMet) return;
    if (this.rule.kind === "n_success") this.#isMet = this.#completed >= this.rule.n;
    else if (this.rule.kind === "regex") this.#isMet = this.#pattern?.match(text, this.#stepsMax).isFound === true;
    else this.#vote(this.rule, index, text);
  }

  /** Whether the group may stop: once it may, it does not change. */
  get isMet(): boolean {
    return this.#isMet;
  }

  /** The fewest further answers that may meet the rule; null = any may, or none can. */
  get needed(): number | null {
    const { rule } = this;
    if (rule.kind === "regex") return null;
    if (rule.kind === "n_success") return Math.max(1, rule.n - this.#completed);
    const { votes, most } = this.#tally;
    const short = rule.agree * votes - most;
    if (short > 0 && rule.agree === 1) return null;
    const toAgree = short > 0 ? Math.ceil(short / (1 - rule.agree)) : 1;
    return Math.max(1, rule.of - votes, toAgree);
  }

  #vote({ of, agree, comparison }: Extract<StopRule, { kind: "quorum" }>, index: number, text: string): void {
    const vote = voteOf(text, comparison);
    if (vote === null) return;
    this.#tally.add(vote, { index, weight: 1 });
    this.#isMet = this.#tally.votes >= of && this.#tally.most >= agree * this.#tally.votes;
  }
}

/** The rule in words, for the reasons of the slots that it cancels. */
export function ruleText(rule: StopRule): string {
  if (rule.kind === "n_success") return `n_success ${rule.n}`;
  if (rule.kind === "regex") return "regex";
  return `quorum of ${rule.of}`;
}
