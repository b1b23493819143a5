/** What the follower knows of a run. */
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

/** How many calls ended, and how. */
export type Tally = { ok: number; failed: number; cancelled: number };

export type GroupView = {
  id: string;
  count: number;
  tally: Tally;
  /** By `callKey`, oldest first. */
  active: Map<string, ActiveCall>;
  /** The latest, by `callKey`, in the order in which they ended. */
  ended: Map<string, EndedCall>;
  failures: EndedCall[];
};

export type View = {
  lastSeq: number;
  name: string | null;
  /** "open" until the run is closed, cancelled or expired. */
  status: string;
  limitUsd: number | null;
  /** What the attempts and the ended child runs came to, USD. */
  spentUsd: number;
  tally: Tally;
  attempts: { ended: number; latencyMs: number };
  groups: Map<string, GroupView>;
  /** Calls outside the groups that are followed, by `callKey`. */
  single: Map<string, ActiveCall>;
};

export function newView(): View {
  return {
    lastSeq: 0,
    name: null,
    status: "open",
    limitUsd: null,
    spentUsd: 0,
    tally: { ok: 0, failed: 0, cancelled: 0 },
    attempts: { ended: 0, latencyMs: 0 },
    groups: new Map(),
    single: new Map(),
  };
}

/** Names a call: by its place in its group, or as the single call that it is. */
export function callKey({ index, call_id }: { index: number | null; call_id: string | null }): string {
  return call_id ?? `#${index ?? "?"}`;
}

/** Calls of the group that have neither started nor ended. */
export function queuedIn(group: GroupView): number {
  return Math.max(0, group.count - total(group.tally) - group.active.size);
}

export function total({ ok, failed, cancelled }: Tally): number {
  return ok + failed + cancelled;
}

/** Attempts that are being made. */
export function inFlight(view: View): number {
  return [view.single, ...[...view.groups.values()].map((group) => group.active)]
    .flatMap((calls) => [...calls.values()])
    .filter((call) => call.phase === "running").length;
}
