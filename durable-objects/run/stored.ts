/** Groups and pages as their rows hold them. */
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { Drained, GroupHeader, GroupMetrics, GroupStatus } from "../../src/engine/group.ts";
import type { SlotState } from "../../src/engine/slot.ts";

/** A group as stored. `defaultsJson` holds the call settings that its slots share. */
export type StoredGroup = {
  header: GroupHeader;
  defaultsJson: string;
  /** False until its last page has been written: such a group never starts. */
  sealed: boolean;
  /** Names the request that opens it, so that the same request, sent again, finds it. */
  openKey: string;
  /** False if it ends when nobody follows it any more. */
  detach: boolean;
  /** How failed slots are rendered, as the request said or the run by then. */
  errorStyle: ErrorStyle;
  /** Whether its calls have names of the client's. */
  named: boolean;
};

/** How a group ended, or was told to. */
export type GroupResult = {
  status: GroupStatus;
  metrics: GroupMetrics;
  endedAtMs: number | null;
  drained: Drained | null;
  /** Unlike its id only for a single call: the parallel group that it came in. */
  parallelGroupId: string | null;
  counts: Record<SlotState, number>;
};

/** A stored page: `calls` holds one JSON text per line, in the order of `facts`. */
export type StoredPage = { firstIndex: number; facts: string; calls: string };
