/** What a run's log says, up to its last line: calls, groups, money, failures. Lines are applied in order, each once. */
import { addDuration, noDurations } from "../../src/run/measures/percentiles.ts";
import type { Attempt, Call, CallState } from "./call.ts";
import { numberOf, objectOf, textOf, type LogLine } from "./line.ts";
import { narrowingIn } from "./narrowing.ts";

export type GroupState = {
  id: string;
  /** Its place among the groups of the run, from 1. */
  number: number;
  startMs: number;
  endMs: number | null;
  count: number;
  /** Those of its calls that have begun, in that order. */
  calls: Call[];
  ended: number;
  /** Calls of a graph that do not start, by index. */
  skipped: Set<number>;
  status: string | null;
  /** The group whose calls it makes once more; null = none. */
  retryOf: string | null;
  /** Tasks of a graph; null = its calls do not depend on each other. */
  tasks: number | null;
  /** How its calls are called; null = by their index. */
  taskOf: ((index: number) => string | null) | null;
};

export type Failures = { code: string; upstream: string; count: number; example: string; call: Call };
export type Child = { id: string; reservedUsd: number; spentUsd: number | null };
/** A part of the work that the client has named, from `atMs` on. */
export type Phase = { atMs: number; name: string };
/** Calls in flight from `atMs` on. */
export type InFlight = { atMs: number; count: number };

/** Causes of failures that are listed; a run with more has a cause that is not worth a line of its own. */
const FAILURES_MAX = 100;
/** Phases and models with a row of their own; more would not fit on a screen. */
const PHASES_MAX = 200;

export class RunState {
  readonly calls: Call[] = [];
  /** Those of them that belong to no group. */
  readonly single: Call[] = [];
  readonly groups = new Map<string, GroupState>();
  readonly failures = new Map<string, Failures>();
  readonly children = new Map<string, Child>();
  readonly inFlight: InFlight[] = [];
  mostInFlight = 0;
  readonly phases: Phase[] = [];
  /** Models in the order in which they were first called. */
  readonly models = new Set<string>();
  readonly upstreams = new Set<string>();
  lastSeq = 0;
  startMs: number | null = null;
  lastMs = 0;
  /** Final status of the run; null = it is open. */
  ended: string | null = null;
  spentUsd = 0;
  /** The part of it that ended child runs have spent. */
  childrenUsd = 0;
  /** What the call that cost most has cost. */
  dearestUsd = 0;
  /** The part of it that is charged at its reservation, because the upstream's bill is unknown. */
  estimatedUsd = 0;
  /** What has kept the last of its narrow groups narrow, in words; null = none was. */
  narrowing: string | null = null;
  retries = 0;
  /** How long calls took and were queued whose last attempt has ended, as the run's document counts them. */
  readonly times = { latency: noDurations(), queued: noDurations() };
  readonly counts: Record<CallState, number> = { running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0 };
  readonly #calls = new Map<string, Call>();
  readonly #reservedUsd = new Map<string, number>();

  /** Dollars reserved by attempts in flight and by open child runs. */
  get reservedUsd(): number {
    return this.inFlightUsd + this.openChildrenUsd;
  }

  get inFlightUsd(): number {
    let sum = 0;
    for (const usd of this.#reservedUsd.values()) sum += usd;
    return sum;
  }

  get openChildrenUsd(): number {
    let sum = 0;
    for (const child of this.children.values()) if (child.spentUsd === null) sum += child.reservedUsd;
    return sum;
  }

  /** Calls that are known to exist: those of groups as they were announced, and single calls as they are seen. */
  get total(): number {
    let sum = this.single.length;
    for (const { count } of this.groups.values()) sum += count;
    return sum;
  }

  /** Calls that graphs have skipped, and those of ended groups that have no line of their own: nothing was left for them to do. */
  get skipped(): number {
    let sum = 0;
    for (const { endMs, count, ended, skipped } of this.groups.values())
      sum += endMs === null ? skipped.size : Math.max(0, count - ended);
    return sum;
  }

  get endedCalls(): number {
    return this.counts.completed + this.counts.failed + this.counts.cancelled + this.skipped;
  }

  /** Names the calls of a group: by the tasks of a graph, or by the ids of a batch; those that come later as well. */
  nameTasks(group: string, taskOf: (index: number) => string | null): void {
    const state = this.groups.get(group);
    if (state === undefined) return;
    state.taskOf = taskOf;
    for (const call of state.calls) if (call.index !== null) call.task = taskOf(call.index);
  }

  /** Applies a line. Lines that were applied before are left out, so a reader may begin again anywhere. */
  apply(line: LogLine): void {
    if (line.seq <= this.lastSeq) return;
    this.lastSeq = line.seq;
    this.startMs ??= line.atMs;
    this.lastMs = Math.max(this.lastMs, line.atMs);
    this.#applyFacts(line);
  }

  #applyFacts(line: LogLine): void {
    const { fields } = line;
    switch (line.type) {
      case "group_started":
        return this.#groupStarted(line);
      case "group_completed":
        return this.#groupCompleted(line);
      case "attempt_started":
        return this.#attemptStarted(line);
      case "attempt_ended":
        return this.#attemptEnded(line);
      case "slot_completed":
        return this.#callEnded(line);
      case "slots_cancelled":
        return this.#callsCancelled(line);
      case "slot_skipped":
        return this.#callSkipped(line);
      case "child_opened": {
        const id = textOf(fields, "child_run_id") ?? "";
        const reservedUsd = numberOf(objectOf(fields, "reserved"), "usd");
        this.children.set(id, { id, reservedUsd, spentUsd: null });
        return;
      }
      case "child_closed": {
        const id = textOf(fields, "child_run_id") ?? "";
        const spentUsd = numberOf(objectOf(fields, "spent"), "usd");
        this.spentUsd += spentUsd;
        this.childrenUsd += spentUsd;
        this.children.set(id, { id, reservedUsd: this.children.get(id)?.reservedUsd ?? 0, spentUsd });
        return;
      }
      case "credit_lost": {
        const usd = numberOf(objectOf(fields, "charged"), "usd");
        this.spentUsd += usd;
        this.estimatedUsd += usd;
        return;
      }
      case "phase": {
        const name = textOf(fields, "output");
        if (name !== null && this.phases.length < PHASES_MAX) this.phases.push({ atMs: line.atMs, name });
        return;
      }
      case "run_closed":
        this.ended = textOf(fields, "status") ?? "closed";
        return;
    }
  }

  #groupStarted({ group, atMs, fields }: LogLine): void {
    if (group === null) return;
    const tasks = typeof fields["tasks"] === "number" ? fields["tasks"] : null;
    const state = this.#groupAt(group, atMs);
    state.count = countOf(state, numberOf(fields, "count"));
    Object.assign(state, { tasks, retryOf: textOf(fields, "retry_of") });
  }

  #groupAt(id: string, atMs: number): GroupState {
    const known = this.groups.get(id);
    if (known !== undefined) return known;
    const seen = { calls: [], ended: 0, skipped: new Set<number>(), status: null };
    const told = { retryOf: null, tasks: null, taskOf: null };
    const group: GroupState = {
      id,
      number: this.groups.size + 1,
      startMs: atMs,
      endMs: null,
      count: 0,
      ...seen,
      ...told,
    };
    this.groups.set(id, group);
    return group;
  }

  #groupCompleted({ group, atMs, fields }: LogLine): void {
    const state = group === null ? undefined : this.groups.get(group);
    if (state === undefined) return;
    state.endMs = atMs;
    state.count = countOf(state, numberOf(fields, "count"));
    state.status = textOf(fields, "status");
    this.narrowing = narrowingIn(fields) ?? this.narrowing;
  }

  #attemptStarted(line: LogLine): void {
    const { fields, atMs } = line;
    const call = this.#callOf(line, atMs - numberOf(fields, "queued_ms"));
    const upstream = textOf(fields, "upstream") ?? "";
    const target = `${upstream}/${textOf(fields, "model") ?? ""}`;
    if (call.attempts.length > 0) this.retries += 1;
    this.models.add(target);
    this.upstreams.add(upstream);
    call.attempts.push({ number: numberOf(fields, "attempt"), startMs: atMs, endMs: null, outcome: null, target });
    if (call.attempts.length === 1) call.firstQueuedMs = numberOf(fields, "queued_ms");
    this.#reservedUsd.set(attemptKey(line), numberOf(objectOf(fields, "reserved"), "usd"));
    this.#move(call, "running");
    this.#countInFlight(atMs, 1);
  }

  #attemptEnded(line: LogLine): void {
    const { fields, atMs } = line;
    const usd = numberOf(objectOf(fields, "charged"), "usd");
    this.spentUsd += usd;
    if (fields["estimated"] === true) this.estimatedUsd += usd;
    const call = this.#calls.get(callKey(line));
    const number = numberOf(fields, "attempt");
    const attempt = call?.attempts.findLast((each) => each.endMs === null && each.number === number);
    if (call === undefined || attempt === undefined) return;
    this.#reservedUsd.delete(attemptKey(line));
    call.latencyMs += latencyOf(attempt, numberOf(fields, "latency_ms"), call);
    attempt.endMs = atMs;
    attempt.outcome = textOf(fields, "outcome");
    if (call.state === "running") this.#move(call, "waiting");
    this.#countInFlight(atMs, -1);
  }

  #callEnded(line: LogLine): void {
    const { fields, atMs } = line;
    const call = this.#callOf(line, atMs);
    const status = textOf(fields, "status");
    call.endMs = atMs;
    call.model = textOf(fields, "model");
    call.code = textOf(fields, "code");
    call.message = textOf(fields, "message");
    call.costUsd = numberOf(objectOf(fields, "usage"), "cost");
    call.replayed = fields["replayed"] === true;
    this.dearestUsd = Math.max(this.dearestUsd, call.costUsd);
    this.#move(call, status === "completed" || status === "cancelled" ? status : "failed");
    const group = call.group === null ? undefined : this.groups.get(call.group);
    if (group !== undefined) group.ended += 1;
    if (call.state === "failed") this.#addFailure(call);
    // Null: it ended without an attempt, as one that was refused or cancelled in the queue.
    if (textOf(objectOf(fields, "timestamps"), "llm_call_start") === null) return;
    addDuration(this.times.latency, call.latencyMs);
    addDuration(this.times.queued, call.firstQueuedMs);
  }

  /** Calls that were queued when their group stopped: the log has one line for all of them. */
  #callsCancelled({ group, fields }: LogLine): void {
    const count = numberOf(fields, "count");
    this.counts[textOf(fields, "status") === "failed" ? "failed" : "cancelled"] += count;
    const state = group === null ? undefined : this.groups.get(group);
    if (state !== undefined) state.ended += count;
  }

  /** It has no row: it never waited for a permit. */
  #callSkipped({ group, fields }: LogLine): void {
    const state = group === null ? undefined : this.groups.get(group);
    if (typeof fields["index"] === "number") state?.skipped.add(fields["index"]);
  }

  #addFailure(call: Call): void {
    const code = call.code ?? "unknown";
    const upstream = call.attempts.at(-1)?.target ?? "";
    const key = `${code} ${upstream}`;
    const known = this.failures.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.failures.size < FAILURES_MAX) {
      this.failures.set(key, { code, upstream, count: 1, example: call.message ?? "", call });
    }
  }

  #callOf(line: LogLine, queuedMs: number): Call {
    const key = callKey(line);
    const known = this.#calls.get(key);
    if (known !== undefined) return known;
    const index = typeof line.fields["index"] === "number" ? line.fields["index"] : null;
    const attempts: Attempt[] = [];
    // Single calls start before their group is announced: it is when all of them are known.
    const group = line.group === null ? undefined : this.#groupAt(line.group, line.atMs);
    const facts = {
      task: index === null ? null : (group?.taskOf?.(index) ?? null),
      endMs: null,
      latencyMs: 0,
      firstQueuedMs: 0,
      state: "waiting" as const,
      attempts,
      model: null,
      code: null,
      message: null,
      costUsd: 0,
      replayed: false,
    };
    const call: Call = { index, callId: textOf(line.fields, "call_id"), group: line.group, queuedMs, ...facts };
    this.#calls.set(key, call);
    this.calls.push(call);
    this.counts.waiting += 1;
    if (group === undefined) this.single.push(call);
    else {
      group.calls.push(call);
      group.count = countOf(group, Math.max(group.count, group.calls.length));
    }
    return call;
  }

  #move(call: Call, to: CallState): void {
    this.counts[call.state] -= 1;
    this.counts[to] += 1;
    call.state = to;
  }

  #countInFlight(atMs: number, change: 1 | -1): void {
    const last = this.inFlight.at(-1);
    const count = (last?.count ?? 0) + change;
    // Changes of one millisecond are one point of the curve.
    if (last?.atMs === atMs) last.count = count;
    else this.inFlight.push({ atMs, count });
    this.mostInFlight = Math.max(this.mostInFlight, count);
  }
}

/**
 * How many calls count as the group's that is announced with so many. Single calls that arrive together are announced when the group is
 * closed: the log may have named the first of them without it, so that it counts by itself.
 */
function countOf({ calls }: GroupState, announced: number): number {
  return calls[0]?.index === null ? calls.length : announced;
}

/** What an attempt adds to the time of its call: beside another one that goes on, the time until that began. */
function latencyOf(attempt: Attempt, latencyMs: number, { attempts }: Call): number {
  const other = attempts.find((each) => each !== attempt && each.endMs === null);
  return other === undefined ? latencyMs : Math.min(latencyMs, Math.max(0, other.startMs - attempt.startMs));
}

function callKey({ group, fields }: LogLine): string {
  return textOf(fields, "call_id") ?? `${group} ${numberOf(fields, "index")}`;
}

function attemptKey(line: LogLine): string {
  return `${callKey(line)} ${numberOf(line.fields, "attempt")}`;
}
