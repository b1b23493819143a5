/** What a group's answers are combined to, by the rule that its request names. */
import type { Member } from "./member.ts";
import { Merge, type MergeResult, type MergeSpec } from "./merge.ts";
import { Uncertainty, type UncertaintyResult, type UncertaintySpec } from "./uncertainty.ts";
import { VoteCount, type VoteResult, type VoteSpec } from "./vote.ts";

/** As a client's `aggregate` names it, and as a group's row keeps it. */
export type AggregateSpec = MergeSpec | VoteSpec | UncertaintySpec;

export type AggregateResult = MergeResult | VoteResult | UncertaintyResult;

/** Takes the members of a group in input order, each once, and then has the result. */
export type Aggregator = { add: (member: Member) => void; result: () => AggregateResult };

export function aggregatorOf(spec: AggregateSpec): Aggregator {
  switch (spec.strategy) {
    case "merge":
      return new Merge(spec);
    case "vote":
      return new VoteCount(spec);
    case "uncertainty":
      return new Uncertainty(spec);
  }
}
