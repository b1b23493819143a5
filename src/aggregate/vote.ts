/** Deciding by votes: which answer most members gave, and whether that decides. */
import type { Comparison } from "../call.ts";
import { VOTE_CHOICES_SHOWN, VOTE_SHOWN_CHARS } from "../limits.ts";
import { jsonInAnswer, valueAt } from "./answer-json.ts";
import { voteOf } from "./comparison.ts";
import type { CombiningSettings } from "./calls/calls.ts";
import type { Member } from "./member.ts";
import { Tally, type Choice } from "./tally.ts";

/**
 * When votes decide. `majority`: more than half of them are for one answer. `weighted`: more than half of their weight.
 * `quorum`: at least `of` have voted, and a share of at least `agree` is for one answer, and for no other. `unanimous`:
 * every member has voted, and all for one answer.
 */
export type VoteRule =
  | { rule: "majority" | "unanimous" }
  | { rule: "weighted"; weights: Readonly<Record<string, number>> }
  | { rule: "quorum"; of: number; agree: number };

/** `escalate`: the model that gets the answers if the votes decide nothing; absent = none does. */
export type VoteSpec = { strategy: "vote"; comparison: Comparison; escalate?: Escalation } & VoteRule;

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
  readonly #tally = new Tally();
  /** The beginning of the first answer of each choice, by its index. */
  readonly #shown = new Map<number, string>();
  #members = 0;
  #failed = 0;

  constructor(spec: VoteSpec) {
    this.#spec = spec;
  }

  add({ index, id, completed, text }: Member): void {
    this.#members += 1;
    if (!completed) this.#failed += 1;
    const vote = completed ? voteOf(text, this.#spec.comparison) : null;
    if (vote === null) return;
    const isFirst = this.#tally.add(vote, { index, weight: this.#weightOf(id) });
    if (isFirst) this.#shown.set(index, text.slice(0, VOTE_SHOWN_CHARS));
  }

  result(): VoteResult {
    const { rule, comparison } = this.#spec;
    const of = rule === "weighted" ? "weight" : "votes";
    const ranked = this.#tally.ranked(of);
    const [first, second] = ranked;
    const total = this.#tally[of];
    const agreement = first === undefined || total === 0 ? 0 : first[of] / total;
    const tie = first !== undefined && second !== undefined && first[of] === second[of];
    const decided = first !== undefined && !tie && this.#decides(first, agreement);
    const listed = ranked.slice(0, VOTE_CHOICES_SHOWN);
    const { votes } = this.#tally;
    return {
      strategy: "vote",
      rule,
      by: comparison.by,
      decided,
      winner_index: decided ? first.firstIndex : null,
      agreement: Math.round(agreement * 1_000) / 1_000,
      tie,
      votes,
      abstained: this.#members - this.#failed - votes,
      failed: this.#failed,
      counts: listed.map((choice) => this.#show(choice)),
      other_votes: votes - listed.reduce((sum, choice) => sum + choice.votes, 0),
    };
  }

  #decides({ votes }: Choice, agreement: number): boolean {
    const spec = this.#spec;
    switch (spec.rule) {
      case "majority":
      case "weighted":
        return agreement > 0.5;
      case "quorum":
        return this.#tally.votes >= spec.of && agreement >= spec.agree;
      case "unanimous":
        return votes === this.#members;
    }
  }

  #weightOf(id: string | null): number {
    if (this.#spec.rule !== "weighted" || id === null || !Object.hasOwn(this.#spec.weights, id)) return 1;
    return this.#spec.weights[id] ?? 1;
  }

  #show({ votes, weight, firstIndex }: Choice): Shown {
    return { answer: this.#shown.get(firstIndex) ?? "", votes, weight, first_index: firstIndex };
  }
}

/** What has won, from the whole answer of the first that voted for it: the answer, or the value at the key. */
export function winnerOf(text: string, comparison: Comparison): unknown {
  return comparison.by === "json_key" ? valueAt(jsonInAnswer(text), comparison.key) : text;
}
