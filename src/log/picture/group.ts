/** A group of a run, as far as the events of its log say. */
import { RenewedMap } from "../../renewed/map.ts";
import type { CallName } from "../../run/log.ts";
import type { Call } from "./call.ts";

/** Ended calls by their result, and calls of a graph that do not start. */
export type Tally = { completed: number; failed: number; cancelled: number; skipped: number };

export type Group = {
  id: string;
  /** Its place among the groups of the run, from 1. */
  number: number;
  startMs: number;
  endMs: number | null;
  /** How many calls count as its own: see `countOf`. */
  count: number;
  /** How many it was announced with; 0 = it was not yet. */
  announced: number;
  /** Its calls that have begun, or ended without an attempt. */
  begun: number;
  /** Whether its calls are single calls that arrived together. */
  ofSingles: boolean;
  tally: Tally;
  /** Calls that have begun and have not ended, by `nameInGroup`. */
  open: RenewedMap<string, Call>;
  status: string | null;
  /** The group whose calls it makes once more; null = none. */
  retryOf: string | null;
  /** Tasks of a graph; null = its calls do not depend on each other. */
  tasks: number | null;
};

export function newGroup(id: string, number: number, startMs: number): Group {
  return {
    id,
    number,
    startMs,
    endMs: null,
    count: 0,
    announced: 0,
    begun: 0,
    ofSingles: false,
    tally: { completed: 0, failed: 0, cancelled: 0, skipped: 0 },
    open: new RenewedMap(),
    status: null,
    retryOf: null,
    tasks: null,
  };
}

/**
 * How many calls count as the group's. Single calls that arrive together are announced when no other can join them: the log may have named
 * the first of them without the group, so that it counts by itself.
 */
export function countOf({ ofSingles, begun, announced }: Group): number {
  return ofSingles ? begun : Math.max(announced, begun);
}

/** Calls of the group that have ended. */
export function endedIn({ tally }: Group): number {
  return tally.completed + tally.failed + tally.cancelled;
}

/** The name of a call in its group: its index, or its id if it is a single call. */
export function nameInGroup({ index, callId }: CallName): string {
  return callId ?? `#${index ?? "?"}`;
}
