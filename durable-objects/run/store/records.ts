/** What the rows of a run hold. Objects in use hold rows of these shapes: fields may be added, never renamed. */
import type { Dimension } from "../../../src/errors.ts";
import type { Amounts } from "../../../src/run/money/ledger.ts";
import type { AggregateSpec } from "../../../src/run/answers/aggregate.ts";
import type { ErrorStyle } from "../../../src/contract/fields.ts";
import type {
  Drained,
  Group,
  GroupHeader,
  GroupMetrics,
  GroupStatus,
  GroupUsage,
  Paused,
  Saved,
} from "../../../src/run/group/group.ts";
import type { ShownByRules } from "../../../src/run/rules/rule.ts";
import type { Speculation } from "../../../src/run/group/early-calls.ts";
import type { TailEvent } from "../../../src/run/log.ts";
import type { StoredShard } from "../../../src/run/leases/shard.ts";
import type { SlotState } from "../../../src/run/queue/slot.ts";

/** A group as stored. `defaultsJson` holds the call settings that its slots share. */
export type StoredGroup = {
  header: GroupHeader;
  defaultsJson: string;
  /** False until its last page has been written: a group that is not sealed never starts. */
  sealed: boolean;
  /** Identifies the request that opens it, so that the same request, if it is repeated, finds the group. */
  openKey: string;
  /** False if it is cancelled when no client follows it any more. */
  detach: boolean;
  /** How failed slots are rendered: as the request said, or else the run's settings when it opened. */
  errorStyle: ErrorStyle;
  /** Whether its calls have custom ids, or labels. */
  named: boolean;
  /** Objects in R2 that hold bodies of its calls, numbered from 0; absent = all are in its pages. */
  bodyObjects?: number;
  /** Of a group that was retried, the `openKey` under which R2 has its bodies; absent = its own. */
  bodiesKey?: string;
  /** The batch whose lines it has, which is notified of its progress; absent = it has none. */
  batchId?: string;
  /** How the route that returns the group combines its answers; absent = not at all. */
  aggregate?: AggregateSpec;
};

/** A group's state as its row and its readers need it: how it ended or was stopped, or how far it is. */
export type GroupResult = ShownByRules & {
  status: GroupStatus;
  metrics: GroupMetrics;
  endedAtMs: number | null;
  drained: Drained | null;
  /** Unlike its id only for a single call: the parallel group that it belongs to. */
  parallelGroupId: string | null;
  counts: Record<SlotState, number>;
  /** Absent in rows that were written before there was one: then the slots' rows are summed. */
  usage?: GroupUsage;
  /** Set once its early stop was met. */
  saved?: Saved;
  /** Of a graph with early calls: what they have come to. */
  speculation?: Speculation;
  /** Of a graph: how many of its slots exist, and the ranges of those that do not, each from its first to before its end. */
  graph?: { presentSlots: number; absent: [number, number][] };
  /** Slots that ended with recorded answers; absent = none. */
  replayed?: number;
  /** Set while it waits for a higher limit of its run. */
  paused?: Paused;
};

/** The state of a group in memory. */
export function groupResult(group: Group, nowMs: number): GroupResult {
  const { status, endedAtMs, drained, parallelGroupId, counts, usage, saved, early } = group;
  const plain = { status, metrics: group.metrics(nowMs), endedAtMs, drained, parallelGroupId, counts, usage };
  const result = {
    ...plain,
    ...(saved === null ? {} : { saved }),
    ...group.rules.shown,
    ...(early === null ? {} : { speculation: early.summary((index) => group.stateOf(index)) }),
    ...(group.replayed === 0 ? {} : { replayed: group.replayed }),
    ...(group.paused === null ? {} : { paused: group.paused }),
  };
  if (group.graph === null) return result;
  const { frontier } = group.graph;
  const present = { ...counts, queued: counts.queued - frontier.absentSlots };
  return { ...result, counts: present, graph: { presentSlots: group.presentSlots, absent: frontier.absentRanges() } };
}

/** A stored page: `calls` holds one JSON text per line, in the order of `facts`. */
export type StoredPage = { firstIndex: number; facts: string; calls: string };

/** A shard, and the newest events of the log if its row had to carry them; some may be in rows of the log by now. */
export type ShardRecord = { id: number; shard: StoredShard; tail: TailEvent[] };

/** A shard as it is stored. `tail`: events that are in no row of the log; null = none. */
export type ShardLines = { id: number; text: string; tail: string | null };

/** The shard that the row of a stored call takes, in place of the shard's own. `by` null = none does. */
export type CarriedShard = { by: number | null; shard: ShardLines | undefined };

/** A child run. `opening` = its object is not known to exist yet. */
export type ChildRecord = {
  seq: number;
  id: string;
  state: "opening" | "open" | "ended";
  /** What is reserved for it in its parent's budget. */
  hold: Amounts;
  /** The dimensions in which that is an equal share, because the request named none; absent = none, or not known. */
  equal?: readonly Dimension[];
  /** Set once it has ended. */
  spent: Amounts | null;
  openedAtMs: number;
};

/** What an Idempotency-Key has opened: the number of a group or a child, and the hash of the request. */
export type KeyRecord = { seq: number; hash: string };
