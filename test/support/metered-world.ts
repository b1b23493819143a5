/**
 * Runs and gates that count attempts, with the engine and the gates' sums as they are, and a platform that stops any object between
 * any two steps: what it had not stored is gone, and so is what was on its way to it. Messages may be lost there or back, or come twice.
 */
import assert from "node:assert/strict";
import { RunMeters } from "../../durable-objects/run/meters.ts";
import type { RunState } from "../../durable-objects/run/state.ts";
import { Ledger, NO_LIMITS } from "../../src/run/money/ledger.ts";
import { restoreLease, restoreShard } from "../../src/run/steps/restore.ts";
import { loseAttempts, settle } from "../../src/run/steps/settle.ts";
import { shardText, type AttemptInFlight, type StoredShard } from "../../src/run/leases/shard.ts";
import { EngineState } from "../../src/run/state.ts";
import { dueExchanges, granted, unreached } from "../../src/run/steps/exchange.ts";
import { owedGates } from "../../src/run/steps/metered.ts";
import type { MeterSheet } from "../../src/gate/meter.ts";
import { GateMeters, type BroughtMeter, type CountedRun, type MeterRows } from "../../src/gate/meters.ts";
import { failure, makeTarget, seeded, success } from "./engine.ts";
import { makeGrant } from "./gate-grants.ts";

/** What attempts add up to. */
export type Sums = { attempts: number; promptTokens: number; completionTokens: number; costNanoUsd: number };

export const NO_SUMS: Sums = { attempts: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };

/** The rows of a gate, in memory: each of its methods is a commit. */
export class KeptMeterRows implements MeterRows {
  #sheet = "{}";
  readonly #runs = new Map<string, string>();
  readonly #unread = new Map<string, number>();

  sheet(): MeterSheet {
    return JSON.parse(this.#sheet);
  }

  storeSheet(sheet: Readonly<MeterSheet>): void {
    this.#sheet = JSON.stringify(sheet);
  }

  run(id: string): CountedRun | null {
    return JSON.parse(this.#runs.get(id) ?? "null");
  }

  storeRun(id: string, run: CountedRun): void {
    this.#runs.set(id, JSON.stringify(run));
  }

  isUnread(id: string): boolean {
    return this.#unread.has(id);
  }

  addUnread(id: string, day: number): void {
    this.#unread.set(id, day);
  }

  removeUnread(id: string): void {
    this.#unread.delete(id);
  }

  unreadAfter(after: string, most: number): string[] {
    return [...this.#unread.keys()]
      .filter((id) => id > after)
      .toSorted()
      .slice(0, most);
  }

  unreadCount(): number {
    return this.#unread.size;
  }

  drop(before: { ended: number; any: number }): void {
    for (const [id, day] of this.#unread) if (day < before.any) this.#unread.delete(id);
    for (const id of [...this.#runs.keys()]) {
      const { day, hasEnded } = this.run(id) ?? { day: 0, hasEnded: false };
      if (day < before.any || (hasEnded && day < before.ended)) this.#runs.delete(id);
    }
  }
}

export class GateUnderTest {
  readonly rows = new KeptMeterRows();
  #epoch = 1;
  meters = this.#begin();

  #begin(): GateMeters {
    return new GateMeters(this.rows, { epoch: this.#epoch++, from: "" });
  }

  /** Its object stops, and begins again with the next request. */
  stop(): void {
    this.meters = this.#begin();
  }

  get sums(): Sums {
    const sums = { ...NO_SUMS };
    for (const { outcomes } of Object.values(this.meters.sheet)) {
      for (const { calls, promptTokens, completionTokens, costNanoUsd } of Object.values(outcomes)) {
        sums.attempts += calls;
        sums.promptTokens += promptTokens;
        sums.completionTokens += completionTokens;
        sums.costNanoUsd += costNanoUsd;
      }
    }
    return sums;
  }
}

/** How a message fares: `lost` on its way there, `unanswered` = its reply is, `twice` = it arrives again, later, `slow` = its reply comes later. */
export type Fate = "arrives" | "lost" | "unanswered" | "twice" | "slow";

export class MeteredRun {
  readonly id: string;
  readonly #gates: ReadonlyMap<string, GateUnderTest>;
  readonly #rows = new Map<number, string>();
  readonly #random: () => number;
  #next = 1;
  #instance = 0;
  #isMetered = false;
  hasEnded = false;
  engine: EngineState;
  #meters = this.#newMeters();
  /** What arrives later: messages once more, and replies. */
  readonly late: (() => void)[] = [];
  fate: () => Fate = () => "arrives";
  /** The time of its turns that no step makes. */
  nowMs = 0;

  constructor(id: string, gates: ReadonlyMap<string, GateUnderTest>, seed: number) {
    this.id = id;
    this.#gates = gates;
    this.#random = seeded(seed);
    this.engine = this.#restored(0);
  }

  get sums(): Sums {
    const { spent } = this.engine.ledger;
    const attempts = [...this.engine.shards.values()].reduce((sum, { totals }) => sum + totals.attempts, 0);
    const { usd: costNanoUsd, prompt_tokens: promptTokens, completion_tokens: completionTokens } = spent;
    return { attempts, promptTokens, completionTokens, costNanoUsd };
  }

  get isFinal(): boolean {
    return this.hasEnded && this.engine.attempts.size === 0;
  }

  /** A turn in which an attempt starts at a gate. */
  start(gate: string, nowMs: number): void {
    const attemptId = `${this.id}-${this.#next++}.1`;
    const amounts = { usd: 1_000, calls: 1, prompt_tokens: 50, completion_tokens: 100, new_tokens: 150 };
    this.engine.ledger.restore(attemptId, amounts);
    const lease: AttemptInFlight = {
      attemptId,
      slotId: null,
      attempt: 1,
      target: makeTarget({ upstream: gate, model: `m${this.#next % 3}` }),
      amounts,
      startedAtMs: nowMs,
      queuedMs: 3,
      capTokens: null,
      capKind: "client",
      shape: "chat",
      byteTokensMax: null,
      priced: {},
      textSample: null,
      onLost: "fail",
      expiresAtMs: Infinity,
      gateTokens: { input: 10, all: 100 },
      startSeq: 0,
      dedupeKey: null,
    };
    this.engine.begin(lease, null, null, nowMs);
    this.#commit(nowMs, true);
  }

  /** A turn in which the first attempt ends: like that of a single call, it may be stored later. */
  end(nowMs: number, isStored: boolean): void {
    const [attemptId] = this.engine.attempts.keys();
    if (attemptId === undefined) return;
    const kind = Math.floor(this.#random() * 4);
    const usage = { promptTokens: Math.floor(this.#random() * 50), completionTokens: Math.floor(this.#random() * 100) };
    const outcome =
      kind === 0
        ? failure("rejected")
        : kind === 1
          ? ({ ...failure("rejected", null, 0, false), unsent: true } as const)
          : success(usage);
    settle(this.engine, attemptId, outcome, nowMs);
    this.#commit(nowMs, isStored);
  }

  /** A turn without an operation. */
  turn(nowMs: number): void {
    this.#commit(nowMs, true);
  }

  /** Its object stops: what it had not stored is gone. The executors of its attempts may be gone, too. */
  stop(nowMs: number, losesCalls: boolean): void {
    this.engine = this.#restored(nowMs);
    this.#meters = this.#newMeters();
    if (!losesCalls) return;
    loseAttempts(this.engine, [...this.engine.attempts.keys()], nowMs);
    this.#commit(nowMs, true);
  }

  /** What its alarm does: it is due at the end, and while a gate may not know of something. */
  async alarm(): Promise<void> {
    if (this.isFinal || owedGates(this.engine).length > 0) await this.#meters.report(this.asState);
  }

  read(gates: readonly string[]): Promise<BroughtMeter[]> {
    return this.#meters.read(this.asState, gates).then((meters) => meters.map((meter) => ({ ...meter, mark: null })));
  }

  get asState(): RunState {
    const { engine, isFinal } = this;
    const metered = (): void => void (this.#isMetered = true);
    const state = { engine, isFinal, isMetered: this.#isMetered, settings: { id: this.id }, metered };
    return state as unknown as RunState;
  }

  /** Stores what the turn has changed, and exchanges with the gates. */
  #commit(nowMs: number, isFlushed: boolean): void {
    if (isFlushed || this.engine.mustWrite)
      for (const shard of this.engine.takeWrites().shards) this.#rows.set(shard.id, shardText(shard));
    const who = { run: this.id, instance: `${this.#instance}`, weight: 1 };
    for (const { gate } of dueExchanges(this.engine, who, nowMs)) this.#exchange(gate, nowMs);
  }

  #exchange(gateName: string, nowMs: number): void {
    const gate = this.#gates.get(gateName);
    assert(gate !== undefined);
    const fate = this.fate();
    if (fate !== "lost") gate.meters.exchanged(this.id, nowMs);
    if (fate === "twice") this.late.push(() => gate.meters.exchanged(this.id, nowMs));
    if (fate === "lost" || fate === "unanswered") return unreached(this.engine, gateName, nowMs);
    const { engine } = this;
    const reply = (): void => granted(engine, gateName, makeGrant({ notesRun: true }), nowMs);
    if (fate === "slow") this.late.push(reply);
    else reply();
  }

  #newMeters(): RunMeters {
    return new RunMeters({
      send: async (gateName, meter) => {
        const gate = this.#gates.get(gateName);
        assert(gate !== undefined);
        const fate = this.fate();
        const taken = structuredClone(meter);
        if (fate !== "lost") gate.meters.take([taken], 0);
        if (fate === "twice") this.late.push(() => gate.meters.take([taken], 0));
        if (fate === "lost" || fate === "unanswered") throw new Error("no reply");
        if (fate === "slow") await new Promise<void>((resolve) => this.late.push(resolve));
      },
      submit: (operation) => {
        return new Promise((resolve) => {
          operation(resolve, this.nowMs);
          this.#commit(this.nowMs, false);
        });
      },
    });
  }

  #restored(nowMs: number): EngineState {
    this.#instance += 1;
    const deps = { random: this.#random, factsOf: () => assert.fail("no slots"), targetOf: () => null };
    const ledger = new Ledger({ ...NO_LIMITS, usd: 1_000_000_000 });
    const state = new EngineState({ ledger, width: 512, windowMs: 0, hasGates: true }, deps);
    const rows = [...this.#rows].map(([id, text]) => ({ id, stored: JSON.parse(text) as StoredShard }));
    for (const { id, stored } of rows) {
      const shard = restoreShard(state, id, stored);
      for (const lease of stored.leases) {
        restoreLease(state, shard, lease, makeTarget({ upstream: lease.upstream, model: lease.model }), nowMs);
      }
    }
    return state;
  }
}
