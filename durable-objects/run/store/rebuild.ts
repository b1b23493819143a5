/**
 * A run's engine, from its rows. Reads every shard, the groups that are not settled, and the slots of those that have not ended: what is open
 * decides how much that is.
 */
import { Ledger } from "../../../src/run/money/ledger.ts";
import { readFacts, type ReadPage } from "../../../src/run/queue/call-page.ts";
import { endDrainedSlots } from "../../../src/run/steps/end-slot.ts";
import { enqueueSlots, releaseTiers, setTiers, type Equals } from "../../../src/run/steps/enqueue.ts";
import type { Group, GroupHeader } from "../../../src/run/group/group.ts";
import { restoreExtra } from "../../../src/run/steps/hedge-spend.ts";
import { eventsAfter, RunLog } from "../../../src/run/log.ts";
import {
  requeueTried,
  restoreGraph,
  restoreLease,
  restoreProviderPage,
  restoreShard,
  restoreSlot,
  restoreWindows,
} from "../../../src/run/steps/restore.ts";
import type { LeaseApart, Shard, StoredLease, Target } from "../../../src/run/leases/shard.ts";
import { EngineState, type EngineDeps } from "../../../src/run/state.ts";
import { callEnded, callOpened, mayBeServed } from "../../../src/run/services/table.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { PARALLEL_UNLIMITED } from "../../../src/limits.ts";
import type { RunSettings } from "../../../src/objects/methods/runs.ts";
import { countGroup } from "./counters.ts";
import { Openings } from "./openings.ts";
import type { GroupCounts } from "./meta.ts";
import type { GroupResult, ShardRecord, StoredGroup } from "./records.ts";
import { newestOf, SettledGroups } from "./settled-groups.ts";
import type { RunStore } from "./store.ts";

type AbsentSlots = readonly (readonly [number, number])[];

/** What a rebuild reads. */
export type ReadByRebuild = {
  groups: Pick<RunStore["groups"], "all" | "graphJson" | "pageFacts">;
  slots: Pick<RunStore["slots"], "states" | "from">;
  log: Pick<RunStore["log"], "lastSeq">;
  singles: Pick<RunStore["singles"], "leases">;
} & Pick<RunStore, "shards" | "providerPages">;

export type Rebuilt = {
  engine: EngineState;
  /** Headers and shared settings of the groups that have not ended, by number. */
  openGroups: Map<number, StoredGroup>;
  groupCounts: GroupCounts;
  openings: Openings;
  /** Number of the next group. */
  nextSeq: number;
  settled: SettledGroups;
  /** The highest epoch in a row of a shard; 0 = none has one. */
  epoch: number;
  /** The shards that are newer in rows of stored calls than in their own, once for each of these calls. */
  carried: number[];
  /** When a row of a shard was written that says which groups are settled, or a time before; null = none says so. */
  recordMs: number | null;
  /** Number of the last event in the rows of the log. */
  rowsSeq: number;
};

/** Rebuilds a run's engine and groups. `targetOfLease` resolves a lease's upstream in the present configuration. */
export function rebuild(
  store: ReadByRebuild,
  settings: RunSettings,
  deps: EngineDeps & { targetOfLease: (lease: StoredLease) => Target },
  nowMs: number,
): Rebuilt {
  const { limits, windowMs, serviceTier } = settings;
  const { shards, carried, recordMs } = store.shards();
  const rowsSeq = store.log.lastSeq();
  const tails = shards.map(({ tail }) => tail);
  const settled = newestOf(shards.map(({ shard }) => shard.settled));
  const log = new RunLog(rowsSeq, eventsAfter(rowsSeq, tails));
  if (log.lastSeq === 0) addOpening(log, settings);
  const options = { ledger: new Ledger(limits), width: widthOf(settings), windowMs, log, hasGates: true, serviceTier };
  const engine = new EngineState(options, deps);
  /** The open groups; of a graph that was stopped, with the slots that did not exist then. */
  const stopped = new Map<number, AbsentSlots | null>();
  const rebuilt: Rebuilt = {
    engine,
    openGroups: new Map(),
    groupCounts: { slots: 0, parallelGroups: 0, parallelSlots: 0, ...settled?.counts },
    openings: new Openings(),
    nextSeq: settled?.next ?? 1,
    settled: new SettledGroups(settled),
    epoch: Math.max(0, ...shards.map(({ shard }) => shard.epoch ?? 0)),
    carried,
    recordMs,
    rowsSeq,
  };
  for (const { stored, result } of store.groups.all(settled)) {
    const { seq, openedAtMs } = stored.header;
    rebuilt.nextSeq = Math.max(rebuilt.nextSeq, seq + 1);
    rebuilt.openings.add({ openKey: stored.openKey, seq, stagedAtMs: stored.sealed ? null : openedAtMs });
    if (!stored.sealed) continue;
    countGroup(rebuilt.groupCounts, stored.header);
    rebuilt.settled.note(stored.header);
    restoreService(engine, stored.header, result);
    if (result?.endedAtMs != null) continue;
    rebuilt.openGroups.set(seq, stored);
    stopped.set(seq, result?.graph?.absent ?? null);
    restoreGroup(engine, store, { stored, result }, nowMs);
  }
  const restored = (shard: Shard, lease: StoredLease): void =>
    restoreLease(engine, shard, lease, deps.targetOfLease(lease), nowMs);
  restoreShards(engine, { shards, apart: store.singles.leases(settled) }, restored);
  for (const group of engine.groups.values()) {
    if (group.provider === null) continue;
    for (const page of store.providerPages(group.header.seq))
      restoreProviderPage(engine, group, page, deps.targetOfLease, nowMs);
  }
  restoreExtra(engine);
  for (const [seq, absent] of stopped) queueFresh(engine, store, { seq, absent }, nowMs);
  requeueTried(engine, nowMs);
  return rebuilt;
}

type Opening = Pick<RunSettings, "name" | "limits" | "maxParallel" | "createdAtMs">;

/**
 * A log that has no event yet begins with the run's opening: its settings say all of it until they change, so opening a run writes no row
 * of the log.
 */
export function addOpening(log: RunLog, { name, limits, maxParallel, createdAtMs }: Opening): void {
  log.add({ event: "run_opened", name, limits, maxParallel }, null, createdAtMs);
}

/** Restores the shards, with the leases in their rows and those that are stored apart. */
function restoreShards(
  engine: EngineState,
  { shards, apart }: { shards: readonly ShardRecord[]; apart: Iterable<LeaseApart> },
  restored: (shard: Shard, lease: StoredLease) => void,
): void {
  restoreWindows(
    engine,
    shards.map(({ shard }) => shard),
  );
  for (const { id, shard: stored } of shards) {
    const shard = restoreShard(engine, id, stored);
    for (const lease of stored.leases) restored(shard, lease);
  }
  const upTo = new Map(shards.map(({ id, shard }) => [id, shard.upTo ?? 0]));
  for (const { shard, lease } of apart) {
    // A newer row of its shard has it, or it has ended.
    if (lease.startSeq > (upTo.get(shard) ?? 0)) restored(engine.shard(shard), lease);
  }
}

/** Attempts a run may have in flight at once. */
export function widthOf(settings: Pick<RunSettings, "maxParallel">): number {
  return settings.maxParallel === 0 ? PARALLEL_UNLIMITED : settings.maxParallel;
}

/** What the retry of a batch begins with: its calls, and the indexes of those that have answers from before. */
export type RetriedBatch = { pages: readonly ReadPage[]; kept: readonly number[] };

/** Opens a batch whose rows are there, and of which some calls have completed in groups before. */
export function reopenGroup(
  engine: EngineState,
  store: Pick<ReadByRebuild, "slots">,
  { stored, retried: { pages, kept } }: { stored: StoredGroup; retried: RetriedBatch },
  nowMs: number,
): void {
  const group = engine.openGroup(stored.header, null);
  for (const { firstIndex, slots } of pages) setTiers(group, firstIndex, slots);
  // What they took and cost was counted in their own groups.
  for (const index of kept) group.restore(index, "completed", 0, nowMs);
  restoreEnds(group, store);
  const equals: Equals = new Map();
  for (const { firstIndex, slots } of pages) enqueueSlots(engine, group, firstIndex, slots, equals);
  releaseTiers(engine, group);
}

function restoreGroup(
  engine: EngineState,
  store: ReadByRebuild,
  { stored, result }: { stored: StoredGroup; result: GroupResult | null },
  nowMs: number,
): void {
  const graph = stored.header.graph === undefined ? null : store.groups.graphJson(stored.header.seq);
  const compiled: CompiledGraph | null = graph === null ? null : JSON.parse(graph);
  const group = engine.openGroup(stored.header, compiled);
  if (result?.drained != null) group.drain(result.drained);
  if (result?.saved !== undefined) group.noteSaved(result.saved);
  const isService = stored.header.serves !== undefined && group.drained !== null;
  if (result?.drained?.cause === "stop" || isService) engine.stopped.add(group);
  if (result?.paused !== undefined) group.paused = result.paused;
  if (group.tiers !== null && compiled === null) {
    for (const { firstIndex, facts } of store.groups.pageFacts(stored.header.seq))
      setTiers(group, firstIndex, readFacts(facts, stored.header.models));
  }
  for (const record of store.slots.states(stored.header.seq)) restoreSlot(engine, group, record, nowMs);
  restoreEnds(group, store);
  if (mayBeServed(group)) engine.addServed(group);
}

const FINAL_STATES = ["completed", "failed", "cancelled"] as const;

/** A group that serves another one was opened after it, so the other is there if it has not ended. */
function restoreService(engine: EngineState, { id, seq, serves }: GroupHeader, result: GroupResult | null): void {
  const served = serves === undefined ? undefined : engine.groups.get(serves.seq);
  if (serves === undefined || served === undefined) return;
  callOpened(served, { serves, seq, id });
  if (result?.endedAtMs == null) return;
  const { counts, usage } = result;
  const state = FINAL_STATES.find((each) => counts[each] > 0) ?? "cancelled";
  callEnded(served, { serves, seq, id }, { state, costNanoUsd: usage?.costNanoUsd ?? 0, text: null });
}

/** Tells the rules of a group of the slots that have ended: had that met one of them, the group's row would say so. */
function restoreEnds({ rules, header }: Group, { slots }: Pick<ReadByRebuild, "slots">): void {
  if (!rules.remembersEnds) return;
  for (const record of slots.from(header.seq)) rules.slotEnded(record);
}

function queueFresh(
  engine: EngineState,
  store: ReadByRebuild,
  { seq, absent }: { seq: number; absent: AbsentSlots | null },
  nowMs: number,
): void {
  const group = engine.groups.get(seq);
  if (group === undefined) return;
  if (group.graph !== null) restoreGraph(engine, group, group.drained === null ? null : (absent ?? []));
  if (group.drained !== null) {
    endDrainedSlots(engine, group, nowMs);
    return;
  }
  if (group.graph !== null) return;
  const equals: Equals = new Map();
  for (const page of store.groups.pageFacts(seq)) {
    enqueueSlots(engine, group, page.firstIndex, readFacts(page.facts, group.header.models), equals);
  }
  releaseTiers(engine, group);
}
