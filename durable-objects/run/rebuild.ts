/** A run's engine, from its rows. Costs a pass over the groups and shards, and over the slots of unfinished groups. */
import { ANY_TOKENS } from "../../src/budget/estimate.ts";
import { Ledger } from "../../src/budget/ledger.ts";
import type { GroupHeader } from "../../src/engine/group.ts";
import { enqueueSlots, openGroup } from "../../src/engine/open.ts";
import { readFacts } from "../../src/engine/page.ts";
import { endDrained, requeueTried, restoreLease, restoreShard, restoreSlot } from "../../src/engine/restore.ts";
import type { StoredLease, Target } from "../../src/engine/shard.ts";
import { EngineState, type EngineDeps } from "../../src/engine/state.ts";
import { PARALLEL_MAX } from "../../src/limits.ts";
import { Openings } from "./openings.ts";
import type { RunSettings } from "./settings.ts";
import type { RunStore } from "./store.ts";
import type { GroupResult, StoredGroup } from "./stored.ts";

/** A target for leases whose upstream the configuration no longer has: they can only settle, never start again. */
export const GONE: Omit<Target, "upstream" | "model"> = {
  price: null,
  bounds: ANY_TOKENS,
  maxInFlight: 0,
  timeoutMs: 0,
  attemptsMax: 0,
};

export type Rebuilt = {
  state: EngineState;
  /** Headers and shared settings of the groups that have not ended. */
  open: Map<number, StoredGroup>;
  /** Slots of all groups so far, and of those with at least two. */
  groupCounts: GroupCounts;
  openings: Openings;
  nextSeq: number;
};

export type GroupCounts = { slots: number; parallelGroups: number; parallelSlots: number };

/** Rebuilds what memory holds of a run. `targetOfLease` resolves a lease's upstream in today's configuration. */
export function rebuild(
  store: RunStore,
  settings: RunSettings,
  deps: EngineDeps & { targetOfLease: (lease: StoredLease) => Target },
  nowMs: number,
): Rebuilt {
  const { limits, windowMs } = settings;
  const lastSeq = store.log.lastSeq();
  const state = new EngineState({ ledger: new Ledger(limits), width: widthOf(settings), windowMs, lastSeq }, deps);
  const rebuilt: Rebuilt = {
    state,
    open: new Map(),
    groupCounts: { slots: 0, parallelGroups: 0, parallelSlots: 0 },
    openings: new Openings(),
    nextSeq: 1,
  };
  for (const { stored, result } of store.groups()) {
    const { seq, openedAtMs } = stored.header;
    rebuilt.nextSeq = seq + 1;
    rebuilt.openings.add({ openKey: stored.openKey, seq, stagedAtMs: stored.sealed ? null : openedAtMs });
    if (!stored.sealed) continue;
    countGroup(rebuilt.groupCounts, stored.header);
    if (result?.endedAtMs == null) rebuilt.open.set(stored.header.seq, stored);
    if (rebuilt.open.has(stored.header.seq)) restoreGroup(state, store, { stored, result }, nowMs);
  }
  for (const { id, shard: stored } of store.shards()) {
    const shard = restoreShard(state, id, stored);
    for (const lease of stored.leases) restoreLease(state, shard, lease, deps.targetOfLease(lease), nowMs);
  }
  for (const seq of rebuilt.open.keys()) queueFresh(state, store, seq, nowMs);
  requeueTried(state, nowMs);
  return rebuilt;
}

/** Attempts a run may have in flight at once. */
export function widthOf(settings: Pick<RunSettings, "maxParallel">): number {
  return settings.maxParallel === 0 ? PARALLEL_MAX : settings.maxParallel;
}

/** Adds a group to the run's statistics: a group of one is a sequential query. */
export function countGroup(counts: GroupCounts, header: GroupHeader): void {
  counts.slots += header.count;
  if (header.single === "later") counts.parallelSlots += 1;
  if (header.single === "second") {
    counts.parallelGroups += 1;
    counts.parallelSlots += 2;
  }
  if (header.count < 2) return;
  counts.parallelGroups += 1;
  counts.parallelSlots += header.count;
}

function restoreGroup(
  state: EngineState,
  store: RunStore,
  { stored, result }: { stored: StoredGroup; result: GroupResult | null },
  nowMs: number,
): void {
  const group = openGroup(state, stored.header);
  group.drained = result?.drained ?? null;
  for (const record of store.slots.states(stored.header.seq)) restoreSlot(state, group, record, nowMs);
}

function queueFresh(state: EngineState, store: RunStore, seq: number, nowMs: number): void {
  const group = state.groups.get(seq);
  if (group === undefined) return;
  if (group.drained !== null) {
    endDrained(state, group, nowMs);
    return;
  }
  for (const page of store.pageFacts(seq)) {
    enqueueSlots(state, group, page.firstIndex, readFacts(page.facts, group.header.models));
  }
}
