/** The run's log: pages of it for readers, and events that clients add. */
import type { Refused } from "./types.ts";

/** Who reads the log: a follower reads what happens from now on as well, a reader what there is. Each needs a place at the run. */
export type LogPlace = "follower" | "reader";

/** Events as stored, one JSON text per line; the last of them has the number `last`. */
export type LogRow = { last: number; lines: string };

/** Stored events after a reader's position; `run` holds what every line repeats. */
export type LogPage = {
  rows: LogRow[];
  run: { id: string; parentId: string | null; depth: number };
  /** No event will be added any more: the run has ended, and so has all that it had in flight. */
  final: boolean;
};

/** A client's own event: its facts as a JSON object in text, and the parallel group that it names. */
export type ClientEvent = { json: string; parallelGroupId: string | null };

/** The number of the last event that was added, or why none was. */
export type AppendReply = { ok: true; seq: number } | Refused;
