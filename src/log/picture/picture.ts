/**
 * The one reducer from the events of a run's log to what the run looks like: its calls, groups, child runs and money. The run page,
 * `npm run watch` and traces add what they alone show. It has no clock. Events that it does not know change nothing, and after a gap it
 * goes on with what it was told.
 */
import { labelTexts } from "../../labels.ts";
import { RenewedMap } from "../../renewed/map.ts";
import { usdOf } from "../../run/money/money.ts";
import type { CallName } from "../../run/log.ts";
import type { Attempt, Call, CallState } from "./call.ts";
import type { EventNamed, PictureEvent } from "./event.ts";
import { countOf, nameInGroup, newGroup, type Group, type Tally } from "./group.ts";

/** Amounts in USD; `spentUsd` null = it is open. */
export type Child = { id: string; reservedUsd: number; spentUsd: number | null };

/** The most open calls, open groups and open child runs that a picture remembers, the newest. It forgets what has ended. */
export type Bounds = { calls: number; groups: number; children: number };

/** What an event is about; null = nothing of that kind. */
export type Change<Shown> = {
  call: Call | null;
  /** The group of the call, or of the event. */
  group: (Group & Shown) | null;
  /** The attempt that has started or ended. */
  attempt: Attempt | null;
  /** `begun`: the call is new. `joined`: it was a single call, and turns out to belong to the group. */
  place: "begun" | "joined" | "known";
};

type CallChange<Shown> = Change<Shown> & { call: Call };
type OfCall = { atMs: number; group: string | null } & CallName;

export class RunPicture<Shown extends object> {
  lastSeq = 0;
  name: string | null = null;
  limitUsd: number | null = null;
  startMs: number | null = null;
  lastMs = 0;
  /** Final status of the run; null = it is open. */
  ended: string | null = null;
  readonly groups = new Map<string, Group & Shown>();
  readonly children = new Map<string, Child>();
  readonly counts: Record<CallState, number> = { running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0 };
  /** Calls of graphs that the log says do not start. */
  skippedCalls = 0;
  attemptsInFlight = 0;
  /** Attempts that were answered, and how long they took together. */
  readonly answered = { attempts: 0, latencyMs: 0 };
  /** By `keyOf`. With bounds, one stays until its last attempt has ended, too. */
  readonly #calls = new RenewedMap<string, Call>();
  readonly #shownOf: () => Shown;
  readonly #bounds: Bounds | null;
  #groupsSeen = 0;
  #spentNanoUsd = 0;
  #childrenNanoUsd = 0;
  #estimatedNanoUsd = 0;
  #inFlightNanoUsd = 0;

  /**
   * @param shownOf What its reader keeps with each group beside the facts.
   * @param bounds Null = it remembers all calls, groups and child runs.
   */
  constructor(shownOf: () => Shown, bounds: Bounds | null) {
    this.#shownOf = shownOf;
    this.#bounds = bounds;
  }

  get spentUsd(): number {
    return usdOf(this.#spentNanoUsd);
  }

  /** The part of it that ended child runs have spent. */
  get childrenUsd(): number {
    return usdOf(this.#childrenNanoUsd);
  }

  /** The part of it that is charged at its reservation, because the upstream's bill is unknown. */
  get estimatedUsd(): number {
    return usdOf(this.#estimatedNanoUsd);
  }

  /** Dollars reserved by attempts in flight and by open child runs. */
  get reservedUsd(): number {
    return this.inFlightUsd + this.openChildrenUsd;
  }

  get inFlightUsd(): number {
    return usdOf(this.#inFlightNanoUsd);
  }

  get openChildrenUsd(): number {
    let sum = 0;
    for (const child of this.children.values()) if (child.spentUsd === null) sum += child.reservedUsd;
    return sum;
  }

  /** Takes the event with this number. Null = it has taken this one or a later one before, so a reader may begin again anywhere. */
  add(seq: number, event: PictureEvent): Change<Shown> | null {
    if (seq <= this.lastSeq) return null;
    this.lastSeq = seq - 1;
    return this.next(event);
  }

  /** Takes the event after the last one. */
  next(event: PictureEvent): Change<Shown> {
    this.lastSeq += 1;
    this.startMs ??= event.atMs;
    this.lastMs = Math.max(this.lastMs, event.atMs);
    switch (event.event) {
      case "attempt_started":
        return this.#attemptStarted(event);
      case "attempt_ended":
        return this.#attemptEnded(event);
      case "retry_scheduled":
        return this.#retryScheduled(event);
      case "slot_completed":
        return this.#callEnded(event);
      default:
        return { call: null, group: this.#applyFacts(event), attempt: null, place: "known" };
    }
  }

  /** Applies an event that is about no single call; returns its group. */
  #applyFacts(event: PictureEvent): (Group & Shown) | null {
    const group = this.#groupNamed(event.group);
    switch (event.event) {
      case "run_opened":
        this.name = event.name;
        this.limitUsd = event.limits.usd === null ? null : usdOf(event.limits.usd);
        break;
      case "run_closed":
        this.ended = event.status;
        break;
      case "credit_lost":
        this.#spentNanoUsd += event.charged.usd;
        this.#estimatedNanoUsd += event.charged.usd;
        break;
      case "child_opened":
        this.#childOpened(event);
        break;
      case "child_closed":
        this.#childClosed(event);
        break;
      case "group_started":
        return this.#groupStarted(event);
      case "group_completed":
        if (group !== null) this.#groupCompleted(group, event);
        break;
      // Calls that were queued when their group stopped: the log has one event for all of them.
      case "slots_cancelled":
        this.#tally(group, event.status === "failed" ? "failed" : "cancelled", event.count);
        break;
      case "slot_skipped":
        this.skippedCalls += 1;
        if (group !== null) group.tally.skipped += 1;
        break;
    }
    return group;
  }

  #tally(group: Group | null, result: Exclude<keyof Tally, "skipped">, count: number): void {
    this.counts[result] += count;
    if (group !== null) group.tally[result] += count;
  }

  #childOpened({ childRunId: id, reserved }: EventNamed<"child_opened">): void {
    this.children.set(id, { id, reservedUsd: usdOf(reserved.usd), spentUsd: null });
    for (const oldest of this.children.keys()) {
      if (this.#bounds === null || this.children.size <= this.#bounds.children) break;
      this.children.delete(oldest);
    }
  }

  #childClosed({ childRunId: id, spent }: EventNamed<"child_closed">): void {
    this.#spentNanoUsd += spent.usd;
    this.#childrenNanoUsd += spent.usd;
    if (this.#bounds !== null) this.children.delete(id);
    else
      this.children.set(id, { id, reservedUsd: this.children.get(id)?.reservedUsd ?? 0, spentUsd: usdOf(spent.usd) });
  }

  #groupStarted({ group: id, atMs, ...told }: EventNamed<"group_started">): (Group & Shown) | null {
    if (id === null) return null;
    const group = this.#groupAt(id, atMs);
    group.announced = told.count;
    group.count = countOf(group);
    group.tasks = told.tasks ?? null;
    group.retryOf = told.retryOf ?? null;
    return group;
  }

  #groupCompleted(group: Group, { atMs, count, status }: EventNamed<"group_completed">): void {
    group.endMs = atMs;
    group.announced = count;
    group.count = countOf(group);
    group.status = status;
    if (this.#bounds !== null) this.#forgetGroup(group);
  }

  #groupNamed(id: string | null): (Group & Shown) | null {
    return id === null ? null : (this.groups.get(id) ?? null);
  }

  #groupAt(id: string, atMs: number): Group & Shown {
    const known = this.groups.get(id);
    if (known !== undefined) return known;
    this.#groupsSeen += 1;
    const group = Object.assign(newGroup(id, this.#groupsSeen, atMs), this.#shownOf());
    this.groups.set(id, group);
    for (const oldest of this.groups.values()) {
      if (this.#bounds === null || this.groups.size <= this.#bounds.groups) break;
      this.#forgetGroup(oldest);
    }
    return group;
  }

  #forgetGroup(group: Group): void {
    for (const call of [...group.open.values()]) this.#forgetCall(call);
    this.groups.delete(group.id);
  }

  #attemptStarted(event: EventNamed<"attempt_started">): Change<Shown> {
    const { atMs, upstream, model, queuedMs, reserved } = event;
    const change = this.#callOf(event, atMs - queuedMs);
    const { call } = change;
    const ending = { endMs: null, outcome: null, reservedNanoUsd: reserved.usd };
    const attempt: Attempt = { number: event.attempt, startMs: atMs, model, target: `${upstream}/${model}`, ...ending };
    if (call.attempts.length === 0) call.firstQueuedMs = queuedMs;
    call.attempts.push(attempt);
    call.retry = null;
    this.attemptsInFlight += 1;
    this.#inFlightNanoUsd += reserved.usd;
    if (call.endMs === null) this.#move(call, "running");
    return { ...change, attempt };
  }

  #attemptEnded(event: EventNamed<"attempt_ended">): Change<Shown> {
    const { charged, outcome, latencyMs } = event;
    this.#spentNanoUsd += charged.usd;
    if (event.estimated) this.#estimatedNanoUsd += charged.usd;
    if (outcome === "success") {
      this.answered.attempts += 1;
      this.answered.latencyMs += latencyMs;
    }
    const change = this.#knownCall(event);
    const attempt = change.call?.attempts.findLast((each) => each.endMs === null && each.number === event.attempt);
    if (change.call === null || attempt === undefined) return change;
    const { call } = change;
    call.latencyMs += latencyOf(attempt, latencyMs, call);
    attempt.endMs = event.atMs;
    attempt.outcome = outcome;
    this.attemptsInFlight -= 1;
    this.#inFlightNanoUsd -= attempt.reservedNanoUsd;
    if (call.endMs === null) this.#move(call, isInFlight(call) ? "running" : "waiting");
    this.#forgetEnded(call);
    return { ...change, attempt };
  }

  #retryScheduled(event: EventNamed<"retry_scheduled">): Change<Shown> {
    const change = this.#knownCall(event);
    if (change.call !== null) change.call.retry = { attempt: event.attempt, dueMs: event.atMs + event.delayMs };
    return change;
  }

  #callEnded(event: EventNamed<"slot_completed">): Change<Shown> {
    const { atMs, status, model, code = null, message = null, usage, replayed = false } = event;
    const change = this.#callOf(event, atMs, true);
    const { call, group } = change;
    const result = status === "completed" || status === "cancelled" ? status : "failed";
    // It counts with its result from now on.
    this.counts[call.state] -= 1;
    this.#tally(group, result, 1);
    Object.assign(call, { state: result, endMs: atMs, model, code, message, replayed });
    call.costUsd = usdOf(usage.costNanoUsd);
    group?.open.delete(nameInGroup(call));
    this.#forgetEnded(call);
    return change;
  }

  /** The call of an event, if it is known. */
  #knownCall(event: OfCall): Change<Shown> {
    if (this.#calls.has(keyOf(event))) return this.#callOf(event, event.atMs);
    return { call: null, group: this.#groupNamed(event.group), attempt: null, place: "known" };
  }

  /** The call of an event; a new one was queued at `queuedMs`, and may have `hasEnded`. */
  #callOf(event: OfCall, queuedMs: number, hasEnded = false): CallChange<Shown> {
    const known = this.#calls.get(keyOf(event));
    if (known === undefined) return this.#newCall(event, queuedMs, hasEnded);
    if (known.group !== null || event.group === null)
      return { call: known, group: this.#groupNamed(known.group), attempt: null, place: "known" };
    // The first of several single calls starts before it is known that others arrive with it.
    known.group = event.group;
    const group = this.#groupAt(event.group, event.atMs);
    this.#take(group, known);
    return { call: known, group, attempt: null, place: "joined" };
  }

  #newCall(event: OfCall, queuedMs: number, hasEnded: boolean): CallChange<Shown> {
    const { index, callId, group: id, atMs } = event;
    const attempts: Attempt[] = [];
    const call: Call = {
      ...{ index, callId, group: id, queuedMs, attempts, state: "waiting", task: null },
      ...{ endMs: null, latencyMs: 0, firstQueuedMs: 0, retry: null },
      ...{ model: null, code: null, message: null, costUsd: 0, replayed: false, labels: labelTexts(event) },
    };
    this.#calls.set(keyOf(call), call);
    this.counts.waiting += 1;
    // Single calls start before their group is announced: it is when all of them are known. With bounds, a group that is not known when
    // a call of it ends was forgotten, for it has ended.
    const isGone = hasEnded && this.#bounds !== null;
    const group = id === null ? null : isGone ? this.#groupNamed(id) : this.#groupAt(id, atMs);
    if (group !== null) this.#take(group, call);
    for (const oldest of this.#calls.values()) {
      if (this.#bounds === null || this.#calls.size <= this.#bounds.calls) break;
      this.#forgetCall(oldest);
    }
    return { call, group, attempt: null, place: "begun" };
  }

  #take(group: Group, call: Call): void {
    group.begun += 1;
    group.ofSingles ||= call.index === null;
    group.count = countOf(group);
    if (call.state === "running" || call.state === "waiting") group.open.set(nameInGroup(call), call);
    else group.tally[call.state] += 1;
  }

  #move(call: Call, to: CallState): void {
    this.counts[call.state] -= 1;
    this.counts[to] += 1;
    call.state = to;
  }

  /** With bounds, an ended call is needed until its last attempt has ended. */
  #forgetEnded(call: Call): void {
    if (this.#bounds !== null && call.endMs !== null && !isInFlight(call)) this.#calls.delete(keyOf(call));
  }

  /** What is not known any more does not count as open. */
  #forgetCall(call: Call): void {
    this.#calls.delete(keyOf(call));
    this.#groupNamed(call.group)?.open.delete(nameInGroup(call));
    if (call.endMs === null) this.counts[call.state] -= 1;
    for (const { endMs, reservedNanoUsd } of call.attempts) {
      if (endMs !== null) continue;
      this.attemptsInFlight -= 1;
      this.#inFlightNanoUsd -= reservedNanoUsd;
    }
  }
}

function keyOf(named: { group: string | null } & CallName): string {
  return named.callId ?? `${named.group} ${named.index}`;
}

function isInFlight({ attempts }: Call): boolean {
  return attempts.some(({ endMs }) => endMs === null);
}

/** What an attempt adds to the time of its call: beside another one that goes on, the time until that began. */
function latencyOf(attempt: Attempt, latencyMs: number, { attempts }: Call): number {
  const other = attempts.find((each) => each !== attempt && each.endMs === null);
  return other === undefined ? latencyMs : Math.min(latencyMs, Math.max(0, other.startMs - attempt.startMs));
}
