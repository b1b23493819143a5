/**
 * Replay in a run that records: which recorded answer a slot or a single call gets, from this run or from the one that it
 * replays, and what its own answers are recorded under.
 */
import { partsOf } from "../../../src/answer.ts";
import type { CallFacts } from "../../../src/call.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import type { Recall, ReplayDeps } from "../../../src/run/group/recorded.ts";
import { REPLAYED_CALLS_KEPT } from "../../../src/limits.ts";
import { recordKey } from "../../../src/recordings/content.ts";
import { BoundedMap } from "../../../src/renewed/bounded-map.ts";
import type { NamedAnswer, Recorded, RecordedCall } from "../../../src/objects/methods/replay.ts";
import type { OtherRun } from "./other-run.ts";
import { OTHER_RUN, type Recordings } from "./recordings.ts";

/** What decides the answer of a slot: the hash of its content, or the text to be hashed. */
export type SlotContent = { hash: string } | { text: string };

export type RunReplayDeps = {
  recordings: Recordings;
  /** null = it replays only its own answers. */
  otherRun: OtherRun | null;
  /** The content of a slot; null = its answer is not recorded. */
  contentOf: (group: Group, slotId: number) => SlotContent | null;
  /** Whether equal calls of a slot may share an answer. */
  mayShare: (group: Group, slotId: number) => boolean;
  /** The route that a model resolves to; null = none. */
  routeOf: (model: string | null) => string | null;
  modelOf: (group: Group, slotId: number) => string | null;
  hash: (text: string) => Promise<string>;
  /** These slots may be looked up again, in a turn that follows. */
  lookAgain: (slotIds: readonly number[]) => void;
  /** Runs in a turn of its own. */
  inTurn: (callback: (nowMs: number) => void) => void;
};

/** `isNew`: it comes from another run, and this one has no copy yet. */
type Found = NamedAnswer & { isNew?: true };

/** A single call that looks for its recorded answer. */
export type SingleRecall = { callId: string; epoch: string; content: string; model: string | null; mayShare: boolean };

/** The same with the key of its answer. */
type KeyRecall = Pick<SingleRecall, "callId" | "epoch" | "mayShare"> & { key: string };

export class RunReplay implements ReplayDeps {
  readonly #deps: RunReplayDeps;
  readonly recordings: Recordings;
  /** Hashes of the contents of graphs' slots that have not ended, oldest first; null = it is being computed. */
  readonly #hashes = new Map<number, string | null>();
  readonly #waitingSlots = new Set<number>();
  /** By call: looks again. */
  readonly #waitingCalls = new Map<string, (nowMs: number) => void>();
  /** What single calls were answered lately: the request for an answer may be repeated. */
  readonly #replayed = new BoundedMap<string, NamedAnswer>(REPLAYED_CALLS_KEPT);

  constructor(deps: RunReplayDeps) {
    this.#deps = deps;
    this.recordings = deps.recordings;
  }

  recall(group: Group, slotId: number): Recall {
    const key = this.#keyOf(group, slotId);
    if (key === "awaited") return key;
    const epoch = group.header.replay?.epoch;
    if (key === null || epoch === undefined) return null;
    const found = this.#find({ epoch, key, waiter: String(slotId), mayShare: this.#deps.mayShare(group, slotId) });
    if (found === "awaited") this.#waitingSlots.add(slotId);
    if (found === null || found === "awaited") return found;
    this.#hashes.delete(slotId);
    const { text, model, finishReason, upstream, isJson, id } = found;
    return {
      text,
      ...partsOf(found),
      model,
      finishReason,
      replay: { key, of: id },
      ...(upstream === undefined ? {} : { upstream }),
      ...(isJson === true ? { checks: { repairs: 0, violation: null } } : {}),
    };
  }

  completed(group: Group, record: SlotRecord): string | null {
    const epoch = group.header.replay?.epoch;
    if (epoch === undefined || record.text === null) return null;
    const known = record.replay?.key ?? this.#keyOf(group, record.id);
    this.#hashes.delete(record.id);
    if (known === null || known === "awaited") return null;
    this.recordings.slotCompleted(epoch, { id: record.id, replay: { ...record.replay, key: known } });
    return known;
  }

  /** Whether a call has a recorded answer, so that it may cost nothing: of equal calls only some may have one. */
  hasAnswer({ content, model }: Pick<CallFacts, "content" | "model">): boolean {
    const key = content === undefined ? null : this.keyOfCall({ content, model });
    return key !== null && this.recordings.has(key);
  }

  /** The key of a single call's answer; null = its answer is not recorded. */
  keyOfCall({ content, model }: Pick<SingleRecall, "content" | "model">): string | null {
    const route = this.#deps.routeOf(model);
    return route === null ? null : recordKey(route, content);
  }

  /**
   * The recorded answer of a single call, which its epoch has had from now on; null if there is none.
   * @param again Called in a later turn if the result is `awaited`, for a call that waits here; null = it asks once more.
   */
  recallCall(call: SingleRecall, again: ((nowMs: number) => void) | null): Recorded | "awaited" | null {
    const key = this.keyOfCall(call);
    const found = key === null ? null : this.recallKey({ ...call, key }, again);
    if (found === null || found === "awaited") return found;
    const { id: _, ...answer } = found;
    return answer;
  }

  /** The same for a call whose key is known. */
  recallKey(call: KeyRecall, again: ((nowMs: number) => void) | null): NamedAnswer | "awaited" | null {
    const { callId, epoch, key, mayShare } = call;
    const before = this.#replayed.get(callId);
    if (before !== undefined) return before;
    const found = this.#find({ epoch, key, waiter: callId, mayShare });
    if (found === "awaited") {
      if (again !== null) this.#waitingCalls.set(callId, again);
      return found;
    }
    if (found === null) return null;
    const { id, isNew, ...answer } = found;
    const isCopied = isNew === true && this.recordings.callAnswered({ key, epoch }, answer, id);
    if (!isCopied) this.recordings.callReplayed({ key, epoch }, id);
    const named = { ...answer, id };
    this.#replayed.set(callId, named);
    return named;
  }

  /** The client of a call has left, or its Worker asks once more. */
  forgetCall(callId: string): void {
    this.#waitingCalls.delete(callId);
  }

  /** A single call's attempt has made an answer. */
  callAnswered({ key, epoch, ...more }: RecordedCall, answer: Recorded): void {
    this.recordings.callAnswered({ key, epoch }, { ...answer, ...more });
  }

  /** What was awaited may be here: calls look again in this turn, and slots when it goes on. */
  arrived(): void {
    this.#deps.inTurn((nowMs) => {
      const calls = [...this.#waitingCalls.values()];
      this.#waitingCalls.clear();
      for (const again of calls) again(nowMs);
      this.#deps.lookAgain([...this.#waitingSlots]);
      this.#waitingSlots.clear();
    });
  }

  #find(call: { epoch: string; key: string; waiter: string; mayShare: boolean }): Found | "awaited" | null {
    const { epoch, key, mayShare } = call;
    const own = mayShare ? this.recordings.any(key) : this.recordings.take(epoch, key);
    if (own !== null || this.#deps.otherRun === null) return own;
    for (;;) {
      const other = this.#deps.otherRun.take(call, () => this.recordings.fromOthers(key));
      if (other === null || other === "awaited") return other;
      const id = `${OTHER_RUN}${other.id}`;
      // Another epoch of this run has had it meanwhile, and this one its copy; or it is an equal call's.
      if (this.recordings.hasHad(epoch, id)) {
        this.#deps.otherRun.hadAlready(call);
        continue;
      }
      this.recordings.use(epoch, id);
      return { ...other, id, isNew: true };
    }
  }

  #keyOf(group: Group, slotId: number): string | "awaited" | null {
    const content = this.#deps.contentOf(group, slotId);
    const route = content === null ? null : this.#deps.routeOf(this.#deps.modelOf(group, slotId));
    if (content === null || route === null) return null;
    if ("hash" in content) return recordKey(route, content.hash);
    const known = this.#hashes.get(slotId);
    if (known === undefined) this.#startHash(slotId, content.text);
    return known == null ? "awaited" : recordKey(route, known);
  }

  #startHash(slotId: number, text: string): void {
    this.#hashes.set(slotId, null);
    this.#waitingSlots.add(slotId);
    void this.#deps.hash(text).then((hash) => {
      this.#hashes.set(slotId, hash);
      this.arrived();
    });
  }
}
