/**
 * The coalescing window: single calls that arrive together form a parallel group. A window closes `windowMs` after its last
 * call, and at the latest WINDOW_SLIDES_MAX times that after its first. No call waits for it: a call is dispatched at once
 * and labelled afterwards. A group has its id from its second call on, so a lone call never belongs to one. It is announced
 * once, when all its calls are known: a call may have arrived in time and still be on its way.
 */
import { STOOD_STILL_MS_MAX, WINDOW_GROUPS_KEPT, WINDOW_GROUPS_STORED, WINDOW_SLIDES_MAX } from "../../limits.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** A call's position in its window: the second call forms a group with the first. */
export type WindowPosition = "alone" | "second" | "later";

/**
 * A call's place in a window that an instance of the gateway keeps while it has credit: when the window opened, its
 * group's id if it has one by now, and the call's position.
 */
export type CallLabel = {
  openedAgoMs: number;
  windowNumber: number;
  id: string | null;
  position: WindowPosition;
  /** When the window closes if no further call arrives; negative = it has closed. Absent = `windowMs` after it has opened. */
  closesInMs?: number;
};

/** The same, with the credit of the instance. */
export type InstanceLabel = CallLabel & { creditId: string };

/**
 * An announced group that has not ended, as it is stored. Its members are not: they are the calls that have ended, and those that
 * the next instance finds in flight.
 */
export type StoredWindow = { id: string } & Pick<
  WindowGroup,
  "openedAtMs" | "completed" | "failed" | "peakParallel" | "sequentialMs" | "costNanoUsd" | "endedAtMs"
> & {
    /** Of an instance with credit that may have calls which it has not reported: its id, and the window's number. */
    reported?: string;
    /** Absent = the log has its beginning. */
    isUnannounced?: true;
  };

/** A group of single calls. */
export class WindowGroup {
  /** null until its second member arrives. */
  id: string | null = null;
  readonly openedAtMs: number;
  /** A call that arrives from then on does not join it. */
  closesAtMs: number;
  /** Until then one that has arrived before may still come, and joins it. */
  waitsUntilMs: number;
  /** Whether the log has its beginning. */
  isAnnounced = false;
  members = 1;
  completed = 0;
  failed = 0;
  inFlight = 0;
  peakParallel = 0;
  sequentialMs = 0;
  costNanoUsd = 0;
  endedAtMs: number;
  /** Set for a group that an earlier instance of the run has announced. */
  readonly isRestored: boolean;

  constructor(openedAtMs: number, closesAtMs: number, restored: StoredWindow | null = null) {
    this.openedAtMs = openedAtMs;
    this.closesAtMs = closesAtMs;
    this.waitsUntilMs = closesAtMs;
    this.endedAtMs = openedAtMs;
    this.isRestored = restored !== null;
    if (restored === null) return;
    this.id = restored.id;
    this.isAnnounced = restored.isUnannounced !== true;
    this.members = restored.completed + restored.failed;
    this.completed = restored.completed;
    this.failed = restored.failed;
    this.peakParallel = restored.peakParallel;
    this.sequentialMs = restored.sequentialMs;
    this.costNanoUsd = restored.costNanoUsd;
    this.endedAtMs = restored.endedAtMs;
  }

  /** True while all of its calls have ended. */
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

export class CoalescingWindow {
  #current: WindowGroup | null = null;
  /**
   * Groups whose end has not been emitted, oldest first. A call whose client left between two attempts never ends, so its group must
   * not be kept for ever.
   */
  readonly #formed = new BoundedMap<string, WindowGroup>(WINDOW_GROUPS_KEPT);
  /** Windows of instances with credit that may have calls which were not reported, by instance and number. */
  #reported = new Map<string, WindowGroup>();
  /** The groups of calls between two attempts, by call, oldest first. A client that has left never requests the retry. */
  readonly #between = new BoundedMap<string, WindowGroup>(WINDOW_GROUPS_KEPT);
  #wasFormed = false;
  readonly #windowMs: number;
  readonly #newGroupId: (nowMs: number) => string;

  constructor(windowMs: number, newGroupId: (nowMs: number) => string) {
    this.#windowMs = windowMs;
    this.#newGroupId = newGroupId;
  }

  /**
   * Adds a call. `position` is "second" when this call has formed the group.
   * @param arrivedAtMs When its Worker got it: one that has waited on its way belongs to those that it arrived with.
   */
  join(nowMs: number, arrivedAtMs = nowMs): { group: WindowGroup; position: WindowPosition } {
    const open = this.#current;
    if (open === null || open.isAnnounced || this.#windowMs === 0 || arrivedAtMs >= open.closesAtMs) {
      this.#current = new WindowGroup(nowMs, nowMs + this.#windowMs);
      return { group: this.#current, position: "alone" };
    }
    open.members += 1;
    open.closesAtMs = Math.max(open.closesAtMs, Math.min(nowMs + this.#windowMs, this.#lastCloseMs(open)));
    // Where one is late, those that came with it may be later.
    const lastMs = arrivedAtMs < nowMs ? this.#lastWaitMs(open, nowMs) : open.closesAtMs;
    open.waitsUntilMs = Math.max(open.waitsUntilMs, open.closesAtMs, lastMs);
    if (open.id !== null) return { group: open, position: "later" };
    open.id = this.#newGroupId(open.openedAtMs);
    this.#keep(open.id, open);
    return { group: open, position: "second" };
  }

  /**
   * Adds a call that an instance with credit has placed in a window of its own. The group cannot end before the instance
   * has reported all calls of the window: see `reportedUntil`.
   */
  joinReported(
    instance: string,
    { windowNumber, openedAgoMs, id, position, closesInMs = this.#windowMs - openedAgoMs }: CallLabel,
    nowMs: number,
  ): { group: WindowGroup; position: WindowPosition } {
    const key = `${instance} ${windowNumber}`;
    const known = this.#reported.get(key);
    const group = known ?? new WindowGroup(nowMs - openedAgoMs, nowMs + closesInMs);
    if (known === undefined) this.#reported.set(key, group);
    else group.members += 1;
    group.closesAtMs = Math.max(group.closesAtMs, nowMs + closesInMs);
    if (id !== null && group.id === null) {
      group.id = id;
      this.#keep(id, group);
    }
    return { group, position };
  }

  /** The run's object has just noticed that it stood still: calls that arrived meanwhile come next. */
  stoodStill(nowMs: number): void {
    const open = this.#current;
    if (open === null || open.id === null || open.isAnnounced) return;
    open.waitsUntilMs = Math.max(open.waitsUntilMs, this.#lastWaitMs(open, nowMs));
  }

  /** The instance has reported every call that arrived before now: its windows that are over have all their calls. */
  reportedUntil(instance: string, nowMs: number): void {
    for (const [key, group] of this.#reported)
      if (key.startsWith(`${instance} `) && group.closesAtMs <= nowMs) this.#reported.delete(key);
  }

  /** True once two calls have formed a group, in this instance of the run or an earlier one. */
  get wasFormed(): boolean {
    return this.#wasFormed;
  }

  /** The newest groups that have not ended, as they are stored. */
  get stored(): StoredWindow[] {
    if (this.#formed.size === 0) return [];
    const keys = new Map([...this.#reported].map(([key, group]) => [group, key]));
    return [...this.#formed].slice(-WINDOW_GROUPS_STORED).map(([id, group]) => {
      const { openedAtMs, completed, failed, peakParallel, sequentialMs, costNanoUsd, endedAtMs } = group;
      const reported = keys.get(group);
      const figures = { openedAtMs, completed, failed, peakParallel, sequentialMs, costNanoUsd, endedAtMs };
      const begun = group.isAnnounced ? {} : { isUnannounced: true as const };
      return { id, ...figures, ...(reported === undefined ? {} : { reported }), ...begun };
    });
  }

  /** Takes over the groups that an earlier instance of the run has stored. `wasFormed`: whether it ever had one. */
  restore(stored: readonly StoredWindow[], wasFormed: boolean): void {
    this.#wasFormed ||= wasFormed;
    for (const window of stored) {
      const group = new WindowGroup(window.openedAtMs, window.openedAtMs + this.#windowMs, window);
      this.#keep(window.id, group);
      if (window.reported !== undefined) this.#reported.set(window.reported, group);
    }
  }

  /** The restored group of an attempt that was found in flight; null = it has ended, or is not remembered. */
  readmit(id: string): WindowGroup | null {
    const group = this.byId(id);
    if (group === null) return null;
    group.members += 1;
    group.attemptStarted();
    return group;
  }

  /** Of the instances whose windows were restored, those that have no credit any more report nothing more. */
  keepReported(hasCredit: (instance: string) => boolean): void {
    for (const key of this.#reported.keys())
      if (!hasCredit(key.slice(0, key.lastIndexOf(" ")))) this.#reported.delete(key);
  }

  /** The group of the call that has joined last. */
  get current(): WindowGroup | null {
    return this.#current;
  }

  /** The group of this id, while it has not ended. */
  byId(id: string): WindowGroup | null {
    return this.#formed.get(id) ?? null;
  }

  /** Remembers the group of a call whose attempt has ended and that may be retried. */
  keepPosition(callId: string, group: WindowGroup): void {
    this.#between.set(callId, group);
  }

  /** The group of a call that is retried; `id`: of the group in the reply to its earlier attempt. */
  rejoin(callId: string, id: string | null): WindowGroup | null {
    const kept = this.#between.get(callId) ?? null;
    this.#between.delete(callId);
    if (kept !== null || id === null) return kept;
    const group = this.byId(id);
    // It had no attempt in flight that the restart could have found.
    if (group?.isRestored === true) group.members += 1;
    return group;
  }

  /** Closes the window: the next call opens a new one. */
  flush(): void {
    this.#current = null;
  }

  /** The groups that no call can join any more and whose beginning the log has not: from now on it has. */
  takeClosed(nowMs: number): WindowGroup[] {
    return this.#closed(nowMs).filter((group) => {
      const isNew = !group.isAnnounced;
      group.isAnnounced = true;
      return isNew;
    });
  }

  /** Removes and returns the groups that no call can join any more and whose calls have all ended. */
  takeEnded(nowMs: number): WindowGroup[] {
    const ended = this.#closed(nowMs).filter((group) => group.done);
    for (const { id } of ended) if (id !== null) this.#formed.delete(id);
    return ended;
  }

  /** When a group that has formed can be announced, or ends whose calls have all ended; null if there is none. */
  get nextEndMs(): number | null {
    const open = this.#current;
    const isOpen = open !== null && open.id !== null && this.#formed.has(open.id);
    return isOpen && (open.done || !open.isAnnounced) ? open.waitsUntilMs : null;
  }

  /** The groups that no call can join any more. */
  #closed(nowMs: number): WindowGroup[] {
    if (this.#formed.size === 0) return [];
    const unreported = new Set(this.#reported.values());
    const isOpen = (group: WindowGroup): boolean => group === this.#current && nowMs < group.waitsUntilMs;
    return [...this.#formed.values()].filter((group) => !unreported.has(group) && !isOpen(group));
  }

  #keep(id: string, group: WindowGroup): void {
    this.#formed.set(id, group);
    this.#wasFormed = true;
  }

  /** Until when a group waits for calls that are on their way, seen from now. */
  #lastWaitMs({ openedAtMs }: WindowGroup, nowMs: number): number {
    return Math.min(nowMs + this.#windowMs, openedAtMs + STOOD_STILL_MS_MAX);
  }

  #lastCloseMs(group: WindowGroup): number {
    return group.openedAtMs + WINDOW_SLIDES_MAX * this.#windowMs;
  }
}
