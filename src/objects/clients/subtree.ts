/** The live figures of a run and everything open below it. */
import type { Objects } from "../address.ts";
import type { Figures } from "../methods/runs.ts";
import {
  SUBTREE_FRESH_RUNS_MAX,
  SUBTREE_LOOK_MS,
  SUBTREE_LOOKS_AT_ONCE,
  SUBTREE_LOOKS_MAX,
  SUBTREE_RUNS_MAX,
} from "../../limits.ts";
import { DIMENSIONS } from "../../run/money/ledger.ts";
import { RunCaller } from "./caller.ts";
import { settled } from "./settlements.ts";
import { SharedLooks } from "./shared-looks.ts";

type Line = { spent: number; in_flight: number };

/** The sums of one isolate, whoever reads them: each asks every run of a subtree. */
const looks = new SharedLooks<Subtree>({
  termMs: ({ runs }) => (runs > SUBTREE_FRESH_RUNS_MAX ? SUBTREE_LOOK_MS : 0),
  keysMax: SUBTREE_LOOKS_MAX,
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    }),
});

type Subtree = Awaited<ReturnType<typeof lookAtSubtree>>;

/** The sum over a subtree; over one of many runs at most a second old. */
export function subtreeOf(objects: Objects, rootId: string): Promise<Subtree> {
  return looks.get(rootId, () => lookAtSubtree(objects, rootId));
}

/**
 * Adds up a subtree: what it has spent and what its calls in flight have reserved, per dimension. What ended children
 * spent is already in their parent's figures; the reservation for an open child is not money in flight, so only its own
 * calls count. `complete` is false if the subtree has more runs than are visited, or one below the root that cannot be read.
 */
async function lookAtSubtree(objects: Objects, rootId: string) {
  const budget = {
    usd: zero(),
    calls: zero(),
    prompt_tokens: zero(),
    completion_tokens: zero(),
    new_tokens: zero(),
  };
  let runs = 0;
  let unread = 0;
  let level = [rootId];
  while (level.length > 0 && runs < SUBTREE_RUNS_MAX) {
    const visited = level.slice(0, SUBTREE_RUNS_MAX - runs);
    runs += visited.length;
    const looks = await inWaves(visited, (id) => figuresOf(objects, id));
    level = level.slice(visited.length);
    for (const [index, settledLook] of looks.entries()) {
      if (settledLook.status === "rejected") {
        if (visited[index] === rootId) throw settledLook.reason;
        unread++;
        continue;
      }
      const look = settledLook.value;
      if (look === null) continue;
      level.push(...look.openChildren);
      for (const dimension of DIMENSIONS) {
        budget[dimension].spent += look.spent[dimension];
        budget[dimension].in_flight += look.inFlight[dimension];
      }
    }
  }
  return { runs, complete: level.length === 0 && unread === 0, budget };
}

/** Looks at some runs at a time, in order: hundreds of objects that start at once hold their isolate for seconds. */
export async function inWaves<T>(
  ids: readonly string[],
  look: (id: string) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> {
  const results: PromiseSettledResult<T>[] = [];
  for (let at = 0; at < ids.length; at += SUBTREE_LOOKS_AT_ONCE)
    results.push(...(await Promise.allSettled(ids.slice(at, at + SUBTREE_LOOKS_AT_ONCE).map(look))));
  return results;
}

async function figuresOf(objects: Objects, id: string): Promise<Figures | null> {
  await settled(objects, id);
  return await new RunCaller(objects, id).callWithRetry<Figures | null>((run) => run.figures());
}

function zero(): Line {
  return { spent: 0, in_flight: 0 };
}
