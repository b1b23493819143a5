/** The state of a run that `npm run watch` shows. */
import type { EventOf } from "./event.ts";

/** A call that has started and not ended. `sinceMs` is when its attempt started, or for `waiting` when it ended. */
export type ActiveCall = {
  phase: "running" | "waiting";
  model: string;
  attempt: number;
  sinceMs: number;
  dueMs: number;
};
export type EndedCall = EventOf<"slot_completed">;

/** Numbers of ended calls, by result. */
export type Tally = { ok: number; failed: number; cancelled: number; skipped: number };

/** The tally of a group that has just been announced. */
export function noTally(): Tally {
  return { ok: 0, failed: 0, cancelled: 0, skipped: 0 };
}

export type GroupView = {
  id: string;
  count: number;
  tally: Tally;
  /** By `callKey`, oldest first. */
  active: Map<string, ActiveCall>;
  /** The latest, by `callKey`, in the order in which they ended. */
  ended: Map<string, EndedCall>;
  /** Why calls of a graph do not start: the code of the latest, by `callKey`. */
  skipped: Map<string, string>;
  failures: EndedCall[];
};

export type View = {
  lastSeq: number;
  name: string | null;
  /** "open" until the run is closed, cancelled or expired. */
  status: string;
  limitUsd: number | null;
  /** Total cost of attempts and ended child runs, USD. */
  spentUsd: number;
  tally: Tally;
  attempts: { ended: number; latencyMs: number };
  groups: Map<string, GroupView>;
  /** Calls outside of the groups in the view, by `callKey`. */
  single: Map<string, ActiveCall>;
};

export function newView(): View {
  return {
    lastSeq: 0,
    name: null,
    status: "open",
    limitUsd: null,
    spentUsd: 0,
    tally: noTally(),
    attempts: { ended: 0, latencyMs: 0 },
    groups: new Map(),
    single: new Map(),
  };
}

/** The name of a call: its index in its group, or its id if it is a single call. */
export function callKey({ index, call_id }: { index: number | null; call_id: string | null }): string {
  return call_id ?? `#${index ?? "?"}`;
}

/** Calls of the group that have neither started nor ended. */
export function queuedIn(group: GroupView): number {
  return Math.max(0, group.count - total(group.tally) - group.active.size);
}

export function total({ ok, failed, cancelled, skipped }: Tally): number {
  return ok + failed + cancelled + skipped;
}

/** Attempts in flight. */
export function inFlight(view: View): number {
  return [view.single, ...[...view.groups.values()].map((group) => group.active)]
    .flatMap((calls) => [...calls.values()])
    .filter((call) => call.phase === "running").length;
}
