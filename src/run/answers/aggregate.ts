/** What a group's answers are combined to, by the rule that its request names. */
import type { CombiningCalls } from "./calls.ts";
import { VoteWithEscalation, type EscalatedVote } from "./escalation.ts";
import { Judge, type JudgeResult, type JudgeSpec } from "./judge.ts";
import { LlmMerge, type LlmMergeSpec } from "./llm-merge.ts";
import type { Member } from "./member.ts";
import { Merge, type MergeResult, type MergeSpec } from "./merge.ts";
import { Uncertainty, type UncertaintyResult, type UncertaintySpec } from "./uncertainty.ts";
import { VoteCount, type VoteResult, type VoteSpec } from "./vote.ts";

/** As a client's `aggregate` names it, and as a group's row keeps it. */
export type AggregateSpec = MergeSpec | LlmMergeSpec | VoteSpec | UncertaintySpec | JudgeSpec;

export type AggregateResult = MergeResult | VoteResult | EscalatedVote | UncertaintyResult | JudgeResult;

/** Takes the members of a group in input order, each once, and then has the result; some by further calls. */
export type Aggregator = {
  add: (member: Member) => void;
  result: (calls: CombiningCalls) => AggregateResult | Promise<AggregateResult>;
};

/** @param count Members that there may be. */
export function aggregatorOf(spec: AggregateSpec, count: number): Aggregator {
  if (spec.strategy === "judge") return new Judge(spec, count);
  if (spec.strategy === "merge" && spec.mode === "llm") return new LlmMerge(spec);
  if (spec.strategy === "vote" && spec.escalate !== undefined) {
    return new VoteWithEscalation({ ...spec, escalate: spec.escalate }, count);
  }
  return ruleOf(spec);
}

/** The rules that make no calls. */
export function ruleOf(spec: MergeSpec | VoteSpec | UncertaintySpec): Merge | VoteCount | Uncertainty {
  switch (spec.strategy) {
    case "merge":
      return new Merge(spec);
    case "vote":
      return new VoteCount(spec);
    case "uncertainty":
      return new Uncertainty(spec);
  }
}

/** The models of the calls that a rule may make, null = the run's default; none for a rule without calls. */
export function modelsOfCalls(spec: AggregateSpec): (string | null)[] {
  if (spec.strategy === "judge" || (spec.strategy === "merge" && spec.mode === "llm")) return [spec.model];
  return spec.strategy === "vote" && spec.escalate !== undefined ? [spec.escalate.model] : [];
}
