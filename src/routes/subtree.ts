/** The live figures of a run and everything open below it. */
import { runOf, type Objects } from "../../durable-objects/address.ts";
import { SUBTREE_RUNS_MAX } from "../limits.ts";

type Line = { spent: number; in_flight: number };

/**
 * Adds up a subtree: what it has spent and what its calls in flight have reserved, per dimension. What ended children
 * spent is in their parent's figures already; what an open child holds is not money in flight, so only its own calls
 * count. `complete` is false when there were more runs than one look visits.
 */
export async function subtreeOf(objects: Objects, rootId: string) {
  const budget = { usd: zero(), calls: zero(), prompt_tokens: zero(), completion_tokens: zero() };
  let runs = 0;
  let level = [rootId];
  while (level.length > 0 && runs < SUBTREE_RUNS_MAX) {
    const visited = level.slice(0, SUBTREE_RUNS_MAX - runs);
    runs += visited.length;
    const looks = await Promise.all(visited.map((id) => runOf(objects, id).figures()));
    level = level.slice(visited.length);
    for (const look of looks) {
      if (look === null) continue;
      level.push(...look.openChildren);
      for (const dimension of ["usd", "calls", "prompt_tokens", "completion_tokens"] as const) {
        budget[dimension].spent += look.spent[dimension];
        budget[dimension].in_flight += look.inFlight[dimension];
      }
    }
  }
  return { runs, complete: level.length === 0, budget };
}

function zero(): Line {
  return { spent: 0, in_flight: 0 };
}
