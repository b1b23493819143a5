/** Votes, counted. An answer that is an error never reaches a tally. */

/** What answers voted for: how often, with what weight, and which answer was the first in input order. */
export type Choice = { votes: number; weight: number; firstIndex: number };

export class Tally {
  readonly #choices = new Map<string, Choice>();
  #votes = 0;
  #weight = 0;

  /** Counts a vote of the answer at `index`. True if it is the first in input order, so far, of those that vote alike. */
  add(vote: string, { index, weight }: { index: number; weight: number }): boolean {
    this.#votes += 1;
    this.#weight += weight;
    const known = this.#choices.get(vote);
    if (known === undefined) {
      this.#choices.set(vote, { votes: 1, weight, firstIndex: index });
      return true;
    }
    known.votes += 1;
    known.weight += weight;
    const isFirst = index < known.firstIndex;
    if (isFirst) known.firstIndex = index;
    return isFirst;
  }

  get votes(): number {
    return this.#votes;
  }

  get weight(): number {
    return this.#weight;
  }

  /** All that was voted for: most first, then in input order. */
  ranked(of: "votes" | "weight"): Choice[] {
    return [...this.#choices.values()].sort((a, b) => b[of] - a[of] || a.firstIndex - b.firstIndex);
  }

  /** The most votes that agree. */
  get most(): number {
    let most = 0;
    for (const { votes } of this.#choices.values()) most = Math.max(most, votes);
    return most;
  }
}
