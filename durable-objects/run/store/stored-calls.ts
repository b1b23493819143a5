/**
 * The calls of a run's groups: the facts by which dispatch reserves them, and the bodies that executors send. Both are in pages of
 * the group; the bodies of large groups are in R2 instead, and a call of a graph has the outputs of other tasks inserted.
 */
import type { CallBody } from "../../../src/call.ts";
import { readCall, type CallPage } from "../../../src/run/queue/call-page.ts";
import type { GraphReads } from "../../../src/run/group/group-graph.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf, indexOf, slotIdOf, type SlotFacts } from "../../../src/run/queue/slot.ts";
import type { BodyState, EngineState, SubstitutedFacts } from "../../../src/run/state.ts";
import { GraphCalls } from "./graph-calls.ts";
import type { BodyCache } from "./body-cache.ts";
import { PageCache } from "./page-cache.ts";
import type { StoredGroup } from "./records.ts";
import type { RunStore } from "./store.ts";

export type StoredCallsDeps = {
  store: Pick<RunStore, "groups" | "slots">;
  bodies: BodyCache;
  /** A group that has not ended. */
  openGroup: (seq: number) => StoredGroup | undefined;
  /** null while the run is rebuilt: everything that has ended is in rows then. */
  engine: () => EngineState | null;
};

export class StoredCalls {
  readonly #deps: StoredCallsDeps;
  readonly #pages: PageCache;
  readonly #graphCalls: GraphCalls;

  constructor(deps: StoredCallsDeps) {
    const { store, engine } = deps;
    this.#deps = deps;
    this.#pages = new PageCache(
      (slotId) => store.groups.pageOf(slotId),
      (seq) => store.groups.get(seq)?.stored.header.models ?? [],
    );
    this.#graphCalls = new GraphCalls({
      groupOf: (seq) => engine()?.groups.get(seq),
      factsOf: (callId) => this.#pages.facts(callId),
      callOf: (callId) => this.#pages.call(callId),
      rows: store.slots,
      engine,
    });
  }

  // ---- facts ----

  /** The facts of a slot's call as it is stored. */
  factsOf(slotId: number): SlotFacts {
    return this.#pages.facts(slotId);
  }

  /** The same of a slot of a group whose slots may share a call, as the elements of a `foreach` do. */
  factsIn(group: Group, slotId: number): SlotFacts {
    return this.#pages.facts(slotIdOf(group.header.seq, group.callIndexOf(indexOf(slotId))));
  }

  /** The facts of a call of a graph as it will be sent, or why it cannot be. */
  substitutedFactsOf(slotId: number): SubstitutedFacts {
    return this.#graphCalls.factsOf(slotId);
  }

  /** What graphs read of the answers of their slots. */
  get graphReads(): GraphReads {
    return this.#graphCalls;
  }

  // ---- bodies ----

  /** Whether the body of a slot is at hand; if not, it is being read. */
  bodyStateOf(slotId: number): BodyState {
    const seq = groupSeqOf(slotId);
    const group = this.#deps.openGroup(seq);
    const objects = group?.bodyObjects ?? 0;
    if (group === undefined || objects === 0) return "here";
    const place = this.#pages.placeOf(slotId);
    if (place === null) return "here";
    return this.#deps.bodies.stateOf({ seq, openKey: group.bodiesKey ?? group.openKey, objects }, place.object);
  }

  /** The body of a slot's call as it is sent, as JSON text. Throws unless dispatch has just found it at hand. */
  bodyOf(slotId: number): string {
    const seq = groupSeqOf(slotId);
    if (this.#deps.engine()?.groups.get(seq)?.graph != null) return this.#graphCalls.callOf(slotId);
    const place = this.#pages.placeOf(slotId);
    return place === null ? this.#pages.call(slotId) : this.#deps.bodies.line(seq, place);
  }

  /** The body of a call of a graph with outputs of other tasks in it; null if it is sent as it is stored. */
  substitutedBodyOf(group: Group, slotId: number): CallBody | null {
    const call = group.graph === null ? null : this.#graphCalls.substitutedCallOf(slotId);
    return call === null ? null : readCall(call, this.#deps.openGroup(group.header.seq)?.defaultsJson ?? "{}");
  }

  /** The body of a slot of a graph as it will be sent. Throws unless `substitutedFactsOf` was ok. */
  graphBodyOf({ header: { seq } }: Group, slotId: number): CallBody {
    return readCall(this.#graphCalls.callOf(slotId), this.#deps.openGroup(seq)?.defaultsJson ?? "{}");
  }

  // ---- what turns change ----

  /** The present turn stores a page: dispatch need not read it from storage. */
  keepPage(seq: number, page: CallPage): void {
    this.#pages.keep(slotIdOf(seq, page.firstIndex), page, this.#deps.openGroup(seq)?.header.models ?? []);
  }

  /** The turn is stored, with these slots. */
  written(slots: readonly SlotRecord[]): void {
    this.#pages.stored();
    for (const slot of slots) this.#graphCalls.stored(slot);
  }

  /** Calls that were made for a graph as it was may insert other outputs now. */
  graphChanged(): void {
    this.#graphCalls.clear();
  }

  /** A group has ended. `isLast`: no other is open, so nothing is dispatched. */
  groupEnded(seq: number, isLast: boolean): void {
    this.#deps.bodies.forget(seq);
    if (!isLast) return;
    this.#pages.clear();
    this.#graphCalls.clear();
  }
}
