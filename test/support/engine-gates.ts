/** Gates in random histories: they grant, withhold, stop, die and come back. They check that the run keeps to its grants. */
import assert from "node:assert/strict";
import type { Assignment } from "../../src/run/steps/dispatch.ts";
import type { EngineState } from "../../src/run/state.ts";
import { dueExchanges, granted, unreached } from "../../src/run/steps/exchange.ts";
import type { GateGrant } from "../../src/gate/wire.ts";
import { makeChunk, makeGrant, makeStopped } from "./gate-grants.ts";

/** `silent`: no reply comes as long as the gate is in this mode. */
export const GATE_MODES = ["open", "chunks", "withheld", "stopped", "gone", "silent"] as const;
export type GateMode = (typeof GATE_MODES)[number];

const CHUNK = { permits: 2, requests: 3 };

const GRANTS: Record<Exclude<GateMode, "gone" | "silent">, () => GateGrant> = {
  open: () => makeGrant(),
  chunks: () => makeChunk(CHUNK),
  withheld: () => makeChunk({ permits: 0, requests: 0 }),
  stopped: () => makeStopped(),
};

/** What a gate has granted, and what was started since the report that it replied to. */
type Chunk = { grant: GateGrant; atMs: number; started: number };

export class PlannedGates {
  readonly #modes = new Map<string, GateMode>();
  readonly #chunks = new Map<string, Chunk>();
  /** Gates that owe a reply, with what was started since the report. */
  readonly #owed = new Map<string, number>();
  /** Exchanges that a gate has replied to. */
  replies = 0;

  set(gate: string, mode: GateMode): void {
    this.#modes.set(gate, mode);
  }

  /** The run's object restarts: it knows no grant, and no report is under way. */
  forget(): void {
    this.#chunks.clear();
    this.#owed.clear();
  }

  /** Applies the replies to the reports of earlier turns, as operations of this one. */
  reply(state: EngineState, nowMs: number): void {
    for (const [gate, startedSince] of [...this.#owed]) this.#reply(state, gate, startedSince, nowMs);
  }

  /** Checks what a turn has started, and takes the reports that are due after it. */
  turned(state: EngineState, assignments: readonly Assignment[], nowMs: number): void {
    const started = new Map<string, number>();
    for (const { lease } of assignments) started.set(lease.target.gate, (started.get(lease.target.gate) ?? 0) + 1);
    for (const [gate, count] of started) this.#check(state, gate, count, nowMs);
    for (const { gate } of dueExchanges(state, { run: "run", instance: "i", weight: 1 }, nowMs))
      this.#owed.set(gate, 0);
  }

  #check(state: EngineState, gate: string, count: number, nowMs: number): void {
    const owed = this.#owed.get(gate);
    if (owed !== undefined) this.#owed.set(gate, owed + count);
    const chunk = this.#chunks.get(gate);
    if (chunk === undefined) return;
    chunk.started += count;
    const { permits, requests, ttlMs } = chunk.grant;
    if (chunk.grant.class === "open") return;
    // Calls whose clients want the upstream's answer at once are sent nevertheless.
    if (chunk.grant.class === "stopped" || state.upstreams.get(gate)?.stop != null) return;
    assert(nowMs < chunk.atMs + ttlMs, `${count} attempts start at ${gate} under a grant that is over`);
    if (requests !== null)
      assert(chunk.started <= requests, `${chunk.started} attempts start under a grant of ${requests}`);
    const inFlight = state.upstreams.get(gate)?.inFlight ?? 0;
    if (permits !== null) assert(inFlight <= permits, `${inFlight} are in flight under ${permits} permits`);
  }

  #reply(state: EngineState, gate: string, started: number, nowMs: number): void {
    const mode = this.#modes.get(gate) ?? "open";
    if (mode === "silent") return;
    this.#owed.delete(gate);
    if (mode === "gone") {
      // The run may make one attempt at a time, or follow its own limits.
      this.#chunks.delete(gate);
      return unreached(state, gate, nowMs);
    }
    const grant = GRANTS[mode]();
    this.replies += 1;
    granted(state, gate, grant, nowMs);
    this.#chunks.set(gate, { grant, atMs: nowMs, started });
  }
}
