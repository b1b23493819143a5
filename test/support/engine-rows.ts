/** A run's rows in memory, as JSON texts: what an engine under test may find again after a crash, and nothing else. */
import type { EngineState, EngineDeps } from "../../src/engine/state.ts";
import type { Page } from "../../src/engine/page.ts";
import type { SlotRecord } from "../../src/engine/record.ts";
import { storedShard, type StoredLease, type StoredShard, type Target } from "../../src/engine/shard.ts";
import { groupSeqOf, indexOf } from "../../src/engine/slot.ts";
import { rebuild } from "../../durable-objects/run/rebuild.ts";
import type { RunSettings } from "../../durable-objects/run/settings.ts";
import type { GroupResult, RunStore, StoredGroup } from "../../durable-objects/run/store.ts";

/** What a rebuild reads. */
type ReadByRebuild = Pick<RunStore, "groups" | "slotStates" | "pageFacts" | "shards">;

export class Rows implements ReadByRebuild {
  readonly #groups = new Map<number, { stored: string; pages: Page[] }>();
  readonly #results = new Map<number, string>();
  readonly #slots = new Map<number, string>();
  readonly #shards = new Map<number, string>();

  putGroup(stored: StoredGroup, pages: Page[]): void {
    this.#groups.set(stored.header.seq, { stored: JSON.stringify(stored), pages });
  }

  /** Stores what a turn changed. Returns the numbers of the groups that ended in it. */
  commit(state: EngineState, nowMs: number): number[] {
    const { shards, slots, groups } = state.takeWrites();
    for (const shard of shards) this.#shards.set(shard.id, JSON.stringify(storedShard(shard)));
    for (const slot of slots) this.#slots.set(slot.id, JSON.stringify(slot));
    for (const group of groups) {
      const { status, endedAtMs, drained } = group;
      const result: GroupResult = { status, metrics: group.metrics(nowMs), endedAtMs, drained };
      this.#results.set(group.header.seq, JSON.stringify(result));
    }
    return groups.filter((group) => group.done).map((group) => group.header.seq);
  }

  /** The engine that a new instance would find. */
  rebuild(
    settings: RunSettings,
    deps: EngineDeps & { targetOfLease: (lease: StoredLease) => Target },
    nowMs: number,
  ): EngineState {
    // The class's private fields keep any other object from being one; these four methods are all that is used.
    return rebuild(this as ReadByRebuild as RunStore, settings, deps, nowMs).state;
  }

  slot(slotId: number): SlotRecord | null {
    const row = this.#slots.get(slotId);
    return row === undefined ? null : JSON.parse(row);
  }

  result(seq: number): GroupResult | null {
    const row = this.#results.get(seq);
    return row === undefined ? null : JSON.parse(row);
  }

  models(seq: number): readonly (string | null)[] {
    const row = this.#groups.get(seq);
    if (row === undefined) return [];
    const stored: StoredGroup = JSON.parse(row.stored);
    return stored.header.models;
  }

  pageOf(slotId: number): Page | null {
    const pages = this.#groups.get(groupSeqOf(slotId))?.pages ?? [];
    return pages.findLast((page) => page.firstIndex <= indexOf(slotId)) ?? null;
  }

  *groups(): Generator<{ stored: StoredGroup; result: GroupResult | null }> {
    for (const [seq, { stored }] of this.#groups) yield { stored: JSON.parse(stored), result: this.result(seq) };
  }

  *slotStates(groupSeq: number): Generator<SlotRecord> {
    const ids = [...this.#slots.keys()].filter((id) => groupSeqOf(id) === groupSeq).sort((a, b) => a - b);
    for (const id of ids) {
      const record = this.slot(id);
      if (record !== null) yield { ...record, text: null };
    }
  }

  *pageFacts(groupSeq: number): Generator<{ firstIndex: number; facts: string }> {
    yield* this.#groups.get(groupSeq)?.pages ?? [];
  }

  *shards(): Generator<{ id: number; shard: StoredShard }> {
    for (const id of [...this.#shards.keys()].sort((a, b) => a - b)) {
      yield { id, shard: JSON.parse(this.#shards.get(id) ?? "") };
    }
  }
}
