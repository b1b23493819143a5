/** A run's rows in memory, as JSON texts: all that an engine under test finds after a crash. */
import assert from "node:assert/strict";
import type { EngineState, EngineDeps } from "../../src/run/state.ts";
import { eventsAfter, readTail, type LoggedEvent, type LogWrite } from "../../src/run/log.ts";
import type { CallPage } from "../../src/run/queue/call-page.ts";
import type { SlotRecord } from "../../src/run/group/record.ts";
import {
  shardText,
  type LeaseApart,
  type StoredLease,
  type StoredShard,
  type Target,
} from "../../src/run/leases/shard.ts";
import type { StoredProviderPage } from "../../src/run/steps/provider-settle.ts";
import { groupSeqOf, indexOf } from "../../src/run/queue/slot.ts";
import type { CompiledGraph } from "../../src/run/graph/types.ts";
import { rebuild, type ReadByRebuild } from "../../durable-objects/run/store/rebuild.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import {
  groupResult,
  type GroupResult,
  type ShardRecord,
  type StoredGroup,
} from "../../durable-objects/run/store/records.ts";

export class Rows implements ReadByRebuild {
  readonly #groups = new Map<number, { stored: string; pages: CallPage[] }>();
  readonly #providerPages = new Map<number, string[]>();
  readonly #graphs = new Map<number, string>();
  readonly #results = new Map<number, string>();
  readonly #slots = new Map<number, string>();
  readonly #shards = new Map<number, string>();
  readonly #log: { last: number; lines: string }[] = [];

  readonly singles = { leases: (): Generator<LeaseApart> => this.#leases() };
  readonly log = { lastSeq: (): number => this.#log.at(-1)?.last ?? 0 };
  readonly groups = {
    all: (): Generator<{ stored: StoredGroup; result: GroupResult | null }> => this.#all(),
    graphJson: (seq: number): string | null => this.#graphs.get(seq) ?? null,
    pageFacts: (seq: number): Generator<{ firstIndex: number; facts: string }> => this.#pageFacts(seq),
  };
  readonly slots = {
    states: (groupSeq: number): Generator<SlotRecord> => this.#states(groupSeq),
    from: (groupSeq: number, fromIndex = 0): Generator<SlotRecord> => this.#from(groupSeq, fromIndex),
    one: (slotId: number): SlotRecord | null => this.slot(slotId),
  };

  putProviderPage(seq: number, page: StoredProviderPage): void {
    const pages = this.#providerPages.get(seq) ?? [];
    this.#providerPages.set(seq, [...pages, JSON.stringify(page)]);
  }

  /** No call is stored apart from its shard. */
  *#leases(): Generator<LeaseApart> {}

  *providerPages(seq: number): Generator<StoredProviderPage> {
    for (const page of this.#providerPages.get(seq) ?? []) yield JSON.parse(page) as StoredProviderPage;
  }

  putGroup(stored: StoredGroup, pages: CallPage[]): void {
    this.#groups.set(stored.header.seq, { stored: JSON.stringify(stored), pages });
  }

  /** Stores the header of a changed group, with further pages. */
  changeGroup(stored: StoredGroup, pages: readonly CallPage[]): void {
    this.putGroup(stored, [...(this.#groups.get(stored.header.seq)?.pages ?? []), ...pages]);
  }

  putGraph(seq: number, graph: CompiledGraph): void {
    this.#graphs.set(seq, JSON.stringify(graph));
  }

  /** Stores what a turn changed; with `flush`, all events become rows of the log. Returns the slots that it has stored. */
  commit(state: EngineState, nowMs: number, flush: boolean): SlotRecord[] {
    const { shards, slots, groups } = state.takeWrites();
    const log = state.log.write({ carrier: shards[0]?.id ?? null, asRows: flush });
    const { windows, ...others } = state.storedWindows;
    for (const [at, shard] of shards.entries()) {
      const written = at === 0 && windows !== undefined ? { ...others, windows } : others;
      const tail = at === 0 ? log.tail : state.log.tailOf(shard.id);
      const stored = { shard: JSON.parse(shardText(shard, written)), tail: tail?.split("\n") ?? [] };
      this.#shards.set(shard.id, JSON.stringify(stored));
    }
    // As in SQL, a row has no position among the choices of its model.
    for (const { position: _, ...slot } of slots) this.#slots.set(slot.id, JSON.stringify(slot));
    for (const group of groups) {
      this.#results.set(group.header.seq, JSON.stringify(groupResult(group, nowMs)));
    }
    if (log.rows !== null) this.#putLog(log.rows);
    return slots;
  }

  /** The engine that a new instance would find. */
  rebuild(
    settings: RunSettings,
    deps: EngineDeps & { targetOfLease: (lease: StoredLease) => Target },
    nowMs: number,
  ): EngineState {
    return rebuild(this, settings, deps, nowMs).engine;
  }

  /** The log's events from row `fromRow` on, row by row. */
  *logRows(fromRow: number): Generator<{ last: number; events: LoggedEvent[] }> {
    for (const { last, lines } of this.#log.slice(fromRow)) {
      yield { last, events: lines.split("\n").map((line): LoggedEvent => JSON.parse(line)) };
    }
  }

  /** The events that are in no row of the log, but in the rows of shards. */
  logTail(): LoggedEvent[] {
    return eventsAfter(
      this.log.lastSeq(),
      this.shards().shards.map(({ tail }) => tail),
    );
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

  pageOf(slotId: number): CallPage | null {
    const pages = this.#groups.get(groupSeqOf(slotId))?.pages ?? [];
    return pages.findLast((page) => page.firstIndex <= indexOf(slotId)) ?? null;
  }

  *#all(): Generator<{ stored: StoredGroup; result: GroupResult | null }> {
    for (const [seq, { stored }] of this.#groups) yield { stored: JSON.parse(stored), result: this.result(seq) };
  }

  *#pageFacts(groupSeq: number): Generator<{ firstIndex: number; facts: string }> {
    yield* this.#groups.get(groupSeq)?.pages ?? [];
  }

  /** No call carries one. */
  shards(): { shards: ShardRecord[]; carried: number[]; recordMs: null } {
    const ids = [...this.#shards.keys()].sort((a, b) => a - b);
    const shards = ids.map((id) => {
      const { shard, tail }: { shard: StoredShard; tail: string[] } = JSON.parse(this.#shards.get(id) ?? "");
      return { id, shard, tail: readTail(tail) };
    });
    return { shards, carried: [], recordMs: null };
  }

  *#states(groupSeq: number): Generator<SlotRecord> {
    for (const record of this.#from(groupSeq)) {
      yield { ...record, text: record.state === "queued" ? record.text : null };
    }
  }

  *#from(groupSeq: number, fromIndex = 0): Generator<SlotRecord> {
    const isOf = (id: number): boolean => groupSeqOf(id) === groupSeq && indexOf(id) >= fromIndex;
    const ids = [...this.#slots.keys()].filter(isOf).sort((a, b) => a - b);
    for (const id of ids) {
      const record = this.slot(id);
      if (record !== null) yield record;
    }
  }

  #putLog({ lastSeq, events }: LogWrite): void {
    assert.equal(lastSeq - events.length, this.log.lastSeq(), "events are numbered without a gap or a repeat");
    this.#log.push({ last: lastSeq, lines: events.map((event) => JSON.stringify(event)).join("\n") });
  }
}
