/** One group of slots in memory: a byte of state per slot, counters, and the measures its answer reports. */
import type { Limits } from "../budget/ledger.ts";
import type { Reason } from "../errors.ts";
import { hasEnded, mayStep, SLOT_STATES, type SlotState } from "./slot.ts";
import type { WindowGroup, WindowPlace } from "./window.ts";

/** What a group is opened with; stored once, never changed. */
export type GroupHeader = {
  seq: number;
  /** Public id, `pg-…`. */
  id: string;
  count: number;
  /** Most attempts of this group in flight at once. */
  concurrency: number;
  onError: "continue" | "abort";
  /** Whether an attempt whose outcome is unknown is made again, under a new reservation. */
  onLost: "retry" | "fail";
  /** Set for a single call that is stored as a group of one: its place among the single calls it came with. */
  single: WindowPlace | null;
  /** Its slots start only when nothing else of the run could, however long they have waited. */
  background?: true;
  openedAtMs: number;
  /** Slots that have not started within this time of the opening never do; null = they wait. */
  deadlineMs: number | null;
  /** The most that one attempt of the group may reserve, where its budget is split; null = as much as there is. */
  share: Limits | null;
  /** Models asked for in this group; a slot names one by its place here. */
  models: readonly (string | null)[];
};

export type GroupStatus = "running" | "completed" | "partial" | "failed" | "cancelled";

/** What a group's answer says of its speed, in the contract's names. */
export type GroupMetrics = {
  wall_ms: number;
  sequential_ms: number;
  speedup: number;
  peak_parallel: number;
  success_rate: number;
};

/** Why nothing more of a group starts: how its queued slots ended. `abort`: one of its own slots failed. */
export type Drained = { state: "cancelled" | "failed"; reason: Reason; cause: "cancel" | "abort" | "deadline" };

const CODE_OF: Record<SlotState, number> = { queued: 0, running: 1, completed: 2, failed: 3, skipped: 4, cancelled: 5 };

export class Group {
  readonly header: GroupHeader;
  readonly #states: Uint8Array;
  /** Attempts begun, per slot. */
  readonly attempts: Uint8Array;
  /** Indexes in the order in which they ended: what a streaming reader pages through. */
  readonly ended: number[] = [];
  readonly counts: Record<SlotState, number>;
  inFlight = 0;
  peakParallel = 0;
  /** Sum of the latencies of all attempts: what the group would have taken one call at a time. */
  sequentialMs = 0;
  /** What its attempts have cost. */
  costNanoUsd = 0;
  /** For a single call: those it came with, as far as memory knows. */
  window: WindowGroup | null = null;
  /** Whether its end has been told. */
  endTold = false;
  endedAtMs: number | null = null;
  /** Slots that were cancelled one by one while they ran. */
  readonly stopped = new Set<number>();
  /** Set when nothing more may start: queued slots without a row of their own ended with this. */
  drained: Drained | null = null;

  constructor(header: GroupHeader) {
    this.header = header;
    this.#states = new Uint8Array(header.count);
    this.attempts = new Uint8Array(header.count);
    this.counts = { queued: header.count, running: 0, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
  }

  stateOf(index: number): SlotState {
    return SLOT_STATES[this.#states[index] ?? 0] ?? "queued";
  }

  /** Moves a slot one step. Throws on a step that the machine does not have: that is a bug, not an input. */
  step(index: number, to: SlotState, nowMs: number): void {
    const from = this.stateOf(index);
    if (!mayStep(from, to)) throw new Error(`slot ${index} of ${this.header.id} may not go from ${from} to ${to}`);
    this.#states[index] = CODE_OF[to];
    this.counts[from] -= 1;
    this.counts[to] += 1;
    if (from === "running") this.inFlight -= 1;
    if (to === "running") {
      this.inFlight += 1;
      this.peakParallel = Math.max(this.peakParallel, this.inFlight);
      this.attempts[index] = (this.attempts[index] ?? 0) + 1;
    }
    if (hasEnded(to)) this.#end(index, nowMs);
  }

  /** Puts a slot into the state that storage holds for it. Used only while the group is rebuilt. */
  restore(index: number, state: SlotState, attempts: number, nowMs: number): void {
    const from = this.stateOf(index);
    this.counts[from] -= 1;
    this.counts[state] += 1;
    this.#states[index] = CODE_OF[state];
    this.attempts[index] = attempts;
    if (state === "running") this.inFlight += 1;
    if (hasEnded(state)) this.#end(index, nowMs);
  }

  /** The parallel group that its calls belong to: itself, or for a single call the one it came in, if any. */
  get parallelGroupId(): string | null {
    return this.header.single === null ? this.header.id : (this.window?.id ?? null);
  }

  /** True once every slot has ended. */
  get done(): boolean {
    return this.ended.length === this.header.count;
  }

  get status(): GroupStatus {
    if (!this.done) return "running";
    if (this.counts.completed === this.header.count) return "completed";
    if (this.drained?.cause === "cancel" && this.counts.cancelled > 0) return "cancelled";
    return this.counts.completed > 0 ? "partial" : "failed";
  }

  metrics(nowMs: number): GroupMetrics {
    const wallMs = Math.max(0, (this.endedAtMs ?? nowMs) - this.header.openedAtMs);
    return {
      wall_ms: wallMs,
      sequential_ms: this.sequentialMs,
      speedup: wallMs === 0 ? 1 : round(this.sequentialMs / wallMs),
      peak_parallel: this.peakParallel,
      success_rate: this.ended.length === 0 ? 1 : round(this.counts.completed / this.ended.length),
    };
  }

  #end(index: number, nowMs: number): void {
    this.ended.push(index);
    if (this.done) this.endedAtMs = nowMs;
  }
}

/** Three decimals are all that a ratio of milliseconds can mean. */
export function round(ratio: number): number {
  return Math.round(ratio * 1_000) / 1_000;
}
