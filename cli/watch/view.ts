/** The picture of a run with what only `npm run watch` shows: of each open group, the calls that ended last. */
import type { Group, Tally } from "../../src/log/picture/group.ts";
import { RunPicture, type Bounds } from "../../src/log/picture/picture.ts";
import { CHILDREN_OPEN_MAX, GROUPS_OPEN_MAX, PICTURE_CALLS_MAX } from "../../src/limits.ts";
import { BoundedMap } from "../../src/renewed/bounded-map.ts";
import type { EventOf } from "./event.ts";

/** Memory is bounded for any length of run. */
const BOUNDS: Bounds = { calls: PICTURE_CALLS_MAX, groups: GROUPS_OPEN_MAX, children: CHILDREN_OPEN_MAX };
/** Ended calls that are kept per group: more than any terminal has rows. */
const CALLS_ENDED_KEPT = 256;

export type EndedCall = EventOf<"slot_completed">;

/** Calls by `nameInGroup`. */
type Shown = {
  /** The latest, in the order in which they ended. */
  ended: BoundedMap<string, EndedCall>;
  /** Why calls of a graph do not start: the code of the latest. */
  skipped: BoundedMap<string, string>;
  /** The first. */
  failures: EndedCall[];
};

export type GroupView = Group & Shown;
export type View = RunPicture<Shown>;

export function newView(): View {
  const shownOf = (): Shown => ({
    ended: new BoundedMap(CALLS_ENDED_KEPT),
    skipped: new BoundedMap(CALLS_ENDED_KEPT),
    failures: [],
  });
  return new RunPicture(shownOf, BOUNDS);
}

/** Calls of the group that have neither started nor ended. */
export function queuedIn(group: GroupView): number {
  return Math.max(0, group.count - total(group.tally) - group.open.size);
}

export function total({ completed, failed, cancelled, skipped }: Tally): number {
  return completed + failed + cancelled + skipped;
}
