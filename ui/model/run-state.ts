/** The picture of a run with what only its page shows: all of its calls, their course over time, and why calls failed. */
import type { Call } from "../../src/log/picture/call.ts";
import { endedIn, type Group } from "../../src/log/picture/group.ts";
import { RunPicture, type Change } from "../../src/log/picture/picture.ts";
import { addDuration, noDurations } from "../../src/run/measures/percentiles.ts";
import { eventIn } from "./event.ts";
import { objectOf, textOf, type LogLine } from "./line.ts";
import { narrowingIn } from "./narrowing.ts";

type Shown = {
  /** Those of its calls that have begun, in that order. */
  calls: Call[];
  /** Calls of a graph that do not start, by index. */
  skipped: Set<number>;
  /** How its calls are called; null = by their index. */
  taskOf: ((index: number) => string | null) | null;
};

export type GroupState = Group & Shown;

export type Failures = { code: string; upstream: string; count: number; example: string; call: Call };
/** A part of the work that the client has named, from `atMs` on. */
export type Phase = { atMs: number; name: string };
/** Calls in flight from `atMs` on. */
export type InFlight = { atMs: number; count: number };

/** Causes of failures that are listed; a run with more has a cause that is not worth a line of its own. */
const FAILURES_MAX = 100;
/** Phases and models with a row of their own; more would not fit on a screen. */
const PHASES_MAX = 200;

export class RunState extends RunPicture<Shown> {
  readonly calls: Call[] = [];
  /** Those of them that belong to no group. */
  readonly single: Call[] = [];
  readonly failures = new Map<string, Failures>();
  readonly inFlight: InFlight[] = [];
  mostInFlight = 0;
  readonly phases: Phase[] = [];
  /** Models in the order in which they were first called. */
  readonly models = new Set<string>();
  readonly upstreams = new Set<string>();
  /** What the call that cost most has cost. */
  dearestUsd = 0;
  /** What has kept the last of its narrow groups narrow, in words; null = none was. */
  narrowing: string | null = null;
  retries = 0;
  /** How long calls took and were queued whose last attempt has ended, as the run's document counts them. */
  readonly times = { latency: noDurations(), queued: noDurations() };

  constructor() {
    super(() => ({ calls: [], skipped: new Set(), taskOf: null }), null);
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
    for (const group of this.groups.values())
      sum += group.endMs === null ? group.skipped.size : Math.max(0, group.count - endedIn(group));
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
    const change = this.add(line.seq, eventIn(line));
    if (change === null) return;
    if (change.call !== null) this.#list(change.call, change);
    const { call, group } = change;
    switch (line.type) {
      case "attempt_started":
        if (call !== null) this.#attemptStarted(call, line);
        break;
      case "attempt_ended":
        if (change.attempt !== null) this.#countInFlight(line.atMs);
        break;
      case "slot_completed":
        if (call !== null) this.#callEnded(call, line);
        break;
      case "slot_skipped":
        // It has no row: it never waited for a permit.
        if (typeof line.fields["index"] === "number") group?.skipped.add(line.fields["index"]);
        break;
      case "group_completed":
        if (group !== null) this.narrowing = narrowingIn(line.fields) ?? this.narrowing;
        break;
      case "phase": {
        const name = textOf(line.fields, "output");
        if (name !== null && this.phases.length < PHASES_MAX) this.phases.push({ atMs: line.atMs, name });
      }
    }
  }

  /** Gives a call that is new, or has joined a group, its place in the lists. */
  #list(call: Call, { group, place }: Change<Shown>): void {
    if (place === "known") return;
    if (place === "joined") this.single.splice(this.single.lastIndexOf(call), 1);
    else this.calls.push(call);
    (group?.calls ?? this.single).push(call);
    if (call.index !== null) call.task = group?.taskOf?.(call.index) ?? null;
  }

  #attemptStarted({ attempts }: Call, { fields, atMs }: LogLine): void {
    if (attempts.length > 1) this.retries += 1;
    this.models.add(attempts.at(-1)?.target ?? "");
    this.upstreams.add(textOf(fields, "upstream") ?? "");
    this.#countInFlight(atMs);
  }

  #callEnded(call: Call, { fields }: LogLine): void {
    this.dearestUsd = Math.max(this.dearestUsd, call.costUsd);
    if (call.state === "failed") this.#addFailure(call);
    // Null: it ended without an attempt, as one that was refused or cancelled in the queue.
    if (textOf(objectOf(fields, "timestamps"), "llm_call_start") === null) return;
    addDuration(this.times.latency, call.latencyMs);
    addDuration(this.times.queued, call.firstQueuedMs);
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

  #countInFlight(atMs: number): void {
    const count = this.attemptsInFlight;
    const last = this.inFlight.at(-1);
    // Changes of one millisecond are one point of the curve.
    if (last?.atMs === atMs) last.count = count;
    else this.inFlight.push({ atMs, count });
    this.mostInFlight = Math.max(this.mostInFlight, count);
  }
}
