/** Counting votes, and whether they decide. Nothing of the answers is kept but what equal votes share. */
import type { Comparison } from "../../call.ts";
import { voteOf } from "./comparison.ts";
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

export type BallotRule = { comparison: Comparison } & VoteRule;

/** What the votes so far say. `agreement`: the share of the votes, or of their weight, for the first of `ranked`. */
export type BallotResult = { ranked: Choice[]; agreement: number; tie: boolean; decided: boolean };

export class Ballot {
  readonly #rule: BallotRule;
  readonly #tally = new Tally();
  #members = 0;
  #failed = 0;

  constructor(rule: BallotRule) {
    this.#rule = rule;
  }

  /** Counts a member, which may fail or abstain. True if its vote is the first in input order, so far, of those that are alike. */
  add({ index, id, completed, text }: Member): boolean {
    this.#members += 1;
    if (!completed) this.#failed += 1;
    const vote = completed ? voteOf(text, this.#rule.comparison) : null;
    return vote !== null && this.#tally.add(vote, { index, weight: this.#weightOf(id) });
  }

  get votes(): number {
    return this.#tally.votes;
  }

  get failed(): number {
    return this.#failed;
  }

  /** Members that completed without a vote. */
  get abstained(): number {
    return this.#members - this.#failed - this.votes;
  }

  get result(): BallotResult {
    const of = this.#rule.rule === "weighted" ? "weight" : "votes";
    const ranked = this.#tally.ranked(of);
    const [first, second] = ranked;
    const total = this.#tally[of];
    const agreement = first === undefined || total === 0 ? 0 : first[of] / total;
    const tie = first !== undefined && second !== undefined && first[of] === second[of];
    return { ranked, agreement, tie, decided: first !== undefined && !tie && this.#decides(first, agreement) };
  }

  #decides({ votes }: Choice, agreement: number): boolean {
    const rule = this.#rule;
    switch (rule.rule) {
      case "majority":
      case "weighted":
        return agreement > 0.5;
      case "quorum":
        return this.votes >= rule.of && agreement >= rule.agree;
      case "unanimous":
        return votes === this.#members;
    }
  }

  #weightOf(id: string | null): number {
    if (this.#rule.rule !== "weighted" || id === null || !Object.hasOwn(this.#rule.weights, id)) return 1;
    return this.#rule.weights[id] ?? 1;
  }
}
