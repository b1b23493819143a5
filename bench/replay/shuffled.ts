/** Lists in a random order. */
import { Random } from "../adversary/random.ts";

/** The elements in another order, the same for the same seed. */
export function shuffled<T>(elements: readonly T[], seed: number): T[] {
  const random = new Random(seed);
  return elements
    .map((element) => ({ element, rank: random.integer(0, 1_000_000_000) }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ element }) => element);
}
