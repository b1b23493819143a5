/** Deciding by votes: which answer most members gave, and whether that decides. */
import type { Comparison } from "../../call.ts";
import { VOTE_CHOICES_SHOWN, VOTE_SHOWN_CHARS } from "../../limits.ts";
import { jsonInAnswer, valueAt } from "./answer-json.ts";
import { Ballot, type BallotRule, type VoteRule } from "./ballot.ts";
import type { CombiningSettings } from "./calls.ts";
import type { Member } from "./member.ts";
import type { Choice } from "./tally.ts";

/**
 * What follows if the votes decide nothing. `escalate`: this model gets the answers; absent = none does. `escalatesGroup`: the
 * group ends as `escalated`; absent = by its calls alone.
 */
export type VoteSpec = {
  strategy: "vote";
  escalate?: Escalation;
  escalatesGroup?: true;
} & BallotRule;

/** Who is asked where votes decide nothing, and how. */
export type Escalation = CombiningSettings & { model: string; prompt: string; charsMax: number };

type Shown = { answer: string; votes: number; weight: number; first_index: number };

export type VoteResult = {
  strategy: "vote";
  rule: VoteRule["rule"];
  by: Comparison["by"];
  decided: boolean;
  /** The first member that gave the winning answer; null if none was decided. */
  winner_index: number | null;
  /** Share of the votes, or of their weight, for the answer that most gave. */
  agreement: number;
  /** Whether several answers have the most votes. */
  tie: boolean;
  votes: number;
  /** Members that completed without a vote, and members that failed. */
  abstained: number;
  failed: number;
  /** Most votes first; `other_votes` are for answers that are not listed. */
  counts: Shown[];
  other_votes: number;
};

export class VoteCount {
  readonly #spec: VoteSpec;
  readonly #ballot: Ballot;
  /** The beginning of the first answer of each choice, by its index. */
  readonly #shown = new Map<number, string>();

  constructor(spec: VoteSpec) {
    this.#spec = spec;
    this.#ballot = new Ballot(spec);
  }

  add(member: Member): void {
    const isFirst = this.#ballot.add(member);
    if (isFirst) this.#shown.set(member.index, member.text.slice(0, VOTE_SHOWN_CHARS));
  }

  result(): VoteResult {
    const { rule, comparison } = this.#spec;
    const { votes, abstained, failed, result } = this.#ballot;
    const { ranked, agreement, tie, decided } = result;
    const listed = ranked.slice(0, VOTE_CHOICES_SHOWN);
    return {
      strategy: "vote",
      rule,
      by: comparison.by,
      decided,
      winner_index: decided ? (ranked[0]?.firstIndex ?? null) : null,
      agreement: Math.round(agreement * 1_000) / 1_000,
      tie,
      votes,
      abstained,
      failed,
      counts: listed.map((choice) => this.#show(choice)),
      other_votes: votes - listed.reduce((sum, choice) => sum + choice.votes, 0),
    };
  }

  #show({ votes, weight, firstIndex }: Choice): Shown {
    return { answer: this.#shown.get(firstIndex) ?? "", votes, weight, first_index: firstIndex };
  }
}

/** What has won, from the whole answer of the first that voted for it: the answer, or the value at the key. */
export function winnerOf(text: string, comparison: Comparison): unknown {
  return comparison.by === "json_key" ? valueAt(jsonInAnswer(text), comparison.key) : text;
}
