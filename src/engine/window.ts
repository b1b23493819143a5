/**
 * Grouping of single calls: those that arrive within `windowMs` of the first form a parallel group. The window is opened
 * by its first call and does not slide. Nobody waits for it: a call is dispatched at once and only labelled afterwards,
 * and a group is announced when its second member arrives, so a lone call never belongs to one.
 */
import { WINDOW_GROUPS_KEPT } from "../limits.ts";

/** A call's place in its window: the second call makes a group of itself and the first. */
export type WindowPlace = "alone" | "second" | "later";

/** A group of single calls. */
export class WindowGroup {
  /** null until its second member arrives. */
  id: string | null = null;
  readonly openedAtMs: number;
  members = 1;
  completed = 0;
  failed = 0;
  inFlight = 0;
  peakParallel = 0;
  sequentialMs = 0;
  costNanoUsd = 0;
  endedAtMs: number;

  constructor(openedAtMs: number) {
    this.openedAtMs = openedAtMs;
    this.endedAtMs = openedAtMs;
  }

  /** True while none of its calls has anything left to do. */
  get done(): boolean {
    return this.completed + this.failed >= this.members;
  }

  attemptStarted(): void {
    this.inFlight += 1;
    this.peakParallel = Math.max(this.peakParallel, this.inFlight);
  }

  attemptEnded(latencyMs: number, costNanoUsd: number): void {
    this.inFlight -= 1;
    this.sequentialMs += latencyMs;
    this.costNanoUsd += costNanoUsd;
  }

  callEnded(completed: boolean, nowMs: number): void {
    this[completed ? "completed" : "failed"] += 1;
    this.endedAtMs = nowMs;
  }
}

export class CallWindow {
  #current: WindowGroup | null = null;
  /** Announced groups whose end has not been told, oldest first. */
  #announced = new Map<string, WindowGroup>();
  /** Calls between two attempts, in the order of their first one's end. */
  #between = new Map<string, WindowGroup>();
  readonly #windowMs: number;
  readonly #newGroupId: (nowMs: number) => string;

  constructor(windowMs: number, newGroupId: (nowMs: number) => string) {
    this.#windowMs = windowMs;
    this.#newGroupId = newGroupId;
  }

  /** Adds a call that arrives now. `place` is "second" when this call made the group one. */
  join(nowMs: number): { group: WindowGroup; place: WindowPlace } {
    const open = this.#current;
    if (open === null || nowMs >= this.#closesAtMs(open)) {
      this.#current = new WindowGroup(nowMs);
      return { group: this.#current, place: "alone" };
    }
    open.members += 1;
    if (open.id !== null) return { group: open, place: "later" };
    open.id = this.#newGroupId(open.openedAtMs);
    this.#announced.set(open.id, open);
    // A call whose client vanished between two attempts never ends: its group is not waited for for ever.
    const oldest = this.#announced.size > WINDOW_GROUPS_KEPT ? this.#announced.keys().next().value : undefined;
    if (oldest !== undefined) this.#announced.delete(oldest);
    return { group: open, place: "second" };
  }

  /** The group that a call which has just joined belongs to. */
  get current(): WindowGroup | null {
    return this.#current;
  }

  /** The announced group of this id, while it has not ended. */
  byId(id: string): WindowGroup | null {
    return this.#announced.get(id) ?? null;
  }

  /** A call's attempt has ended and another may follow: it stays with those it came with. */
  keepPlace(callId: string, group: WindowGroup): void {
    this.#between.set(callId, group);
    // A client that has vanished does not come for its place.
    const oldest = this.#between.size > WINDOW_GROUPS_KEPT ? this.#between.keys().next().value : undefined;
    if (oldest !== undefined) this.#between.delete(oldest);
  }

  /** The group that a call belongs to whose earlier attempt has ended; `id` names it as that attempt was told. */
  rejoin(callId: string, id: string | null): WindowGroup | null {
    const kept = this.#between.get(callId) ?? null;
    this.#between.delete(callId);
    return kept ?? (id === null ? null : this.byId(id));
  }

  /** Closes the window: the next call opens a new one. */
  flush(): void {
    this.#current = null;
  }

  /** Takes out the groups that nobody can join any more and whose calls have all ended. */
  takeEnded(nowMs: number): WindowGroup[] {
    const ended: WindowGroup[] = [];
    for (const [id, group] of this.#announced) {
      if (!group.done || (group === this.#current && nowMs < this.#closesAtMs(group))) continue;
      this.#announced.delete(id);
      ended.push(group);
    }
    return ended;
  }

  /** When a group that waits for nothing but the end of its window can be told to have ended; null = none does. */
  get nextEndMs(): number | null {
    const open = this.#current;
    return open !== null && open.id !== null && open.done && this.#announced.has(open.id)
      ? this.#closesAtMs(open)
      : null;
  }

  #closesAtMs(group: WindowGroup): number {
    return group.openedAtMs + this.#windowMs;
  }
}
