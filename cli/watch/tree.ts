/** A run, and if that is asked for the runs below it: each is read or followed once its parent's log has opened it. */
import type { WatchEvent } from "./event.ts";
import { follow, type Ending, type FollowDeps, type Listener } from "./follow.ts";
import type { Fetch } from "../gateway/requests.ts";
import type { Source } from "./source.ts";
import { readLog } from "./log.ts";
import { printable } from "../text/printable.ts";

/** Runs below the first that are followed at once: more fit on no screen. Others wait until one of these ends. */
export const FOLLOWED_MAX = 32;

/** `id` as it is shown. `level`: 0 for the run that is watched, 1 for its children. */
export type RunPlace = { id: string; parent: string | null; level: number };

export type TreeListener = {
  events(run: RunPlace, events: WatchEvent[]): void | Promise<void>;
  connected(run: RunPlace): void;
  lost(run: RunPlace, why: string, delayMs: number): void;
  /** A run below is not followed any more; `problem` null = it has ended. */
  left(run: RunPlace, problem: string | null): void;
};

/** Child runs that are open and that nobody reads yet, in the order in which they were opened. */
class Waiting {
  readonly #runs = new Map<string, RunPlace>();
  readonly #below: boolean;

  /** @param below Whether runs below the first are wanted. */
  constructor(below: boolean) {
    this.#below = below;
  }

  note(parent: RunPlace, events: readonly WatchEvent[]): void {
    if (!this.#below) return;
    for (const event of events) {
      if (event.event_type === "child_opened")
        this.#runs.set(event.child_run_id, { id: event.child_run_id, parent: parent.id, level: parent.level + 1 });
      // Its parent's log has told what there was to tell.
      if (event.event_type === "child_closed") this.#runs.delete(event.child_run_id);
    }
  }

  next(): RunPlace | null {
    const [run = null] = this.#runs.values();
    if (run !== null) this.#runs.delete(run.id);
    return run;
  }
}

function firstOf({ runId }: Source): RunPlace {
  return { id: printable(runId), parent: null, level: 0 };
}

function sourceOf({ id, level }: RunPlace, first: Source): Source {
  return level === 0 ? first : { ...first, runId: id };
}

/** Follows the tree until its first run has ended and all that are followed have, the signal aborts, or the first run has a problem. */
export async function followTree(
  source: Source,
  deps: FollowDeps,
  { below: isTree, listener, signal }: { below: boolean; listener: TreeListener; signal: AbortSignal },
): Promise<Ending> {
  const waiting = new Waiting(isTree);
  const below = new Set<Promise<void>>();
  const stop = new AbortController();
  const one = (run: RunPlace): Promise<Ending> => {
    const own: Listener = {
      connected: () => listener.connected(run),
      lost: (why, delayMs) => listener.lost(run, why, delayMs),
      events: (events) => {
        waiting.note(run, events);
        // Its children's events come after its own.
        const told = listener.events(run, events);
        followWaiting();
        return told;
      },
    };
    const either = AbortSignal.any([signal, stop.signal]);
    return follow(sourceOf(run, source), deps, { listener: own, signal: either });
  };
  const followWaiting = (): void => {
    for (let run = take(); run !== null; run = take()) {
      const child = run;
      const following = one(child).then((ending) => {
        below.delete(following);
        // At the reader's own end they are all shown as they were.
        if (signal.aborted) return;
        listener.left(child, ending.ended === "problem" ? ending.message : null);
        followWaiting();
      });
      below.add(following);
    }
  };
  const take = (): RunPlace | null => (below.size < FOLLOWED_MAX && !stop.signal.aborted ? waiting.next() : null);
  const ending = await one(firstOf(source));
  if (ending.ended !== "run") stop.abort();
  while (below.size > 0) await Promise.all(below);
  return ending;
}

type Reading = {
  below: boolean;
  fetch: Fetch;
  signal: AbortSignal;
  onEvents(run: RunPlace, events: WatchEvent[]): void | Promise<void>;
};

/** Reads the logs so far of the run and of open runs below it, once. Returns what went wrong with the first of them, or null. */
export async function readTree(source: Source, { below, fetch, signal, onEvents }: Reading): Promise<string | null> {
  const waiting = new Waiting(below);
  const one = (run: RunPlace): Promise<string | null> =>
    readLog(sourceOf(run, source), {
      ...{ fetch, signal },
      onEvents: (events) => {
        waiting.note(run, events);
        return onEvents(run, events);
      },
    });
  const problem = await one(firstOf(source));
  if (problem !== null) return problem;
  let read = 0;
  for (let run = waiting.next(); run !== null && read < FOLLOWED_MAX && !signal.aborted; run = waiting.next()) {
    // A child that cannot be read is left out: it may be gone by now.
    await one(run);
    read += 1;
  }
  return null;
}
