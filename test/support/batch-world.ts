/**
 * A group that goes through its provider's batches, in virtual time: the engine, the work on the batches, which is built anew
 * from what it has stored before every step, and lanes that send live what is left.
 */
import { liveAtMs } from "../../src/run/steps/live-at.ts";
import { claimPage, releaseUnclaimed, sendLive } from "../../src/run/steps/provider-claim.ts";
import { endPage, settleAtProvider } from "../../src/run/steps/provider-settle.ts";
import { leaseOf } from "../../src/run/steps/dispatch.ts";
import type { Group } from "../../src/run/group/group.ts";
import { settle } from "../../src/run/steps/settle.ts";
import type { ProviderJob } from "../../src/executors/provider-batch/part.ts";
import { ProviderWork } from "../../src/executors/provider-batch/work.ts";
import type { ProviderClaim, ProviderGroup, ProviderSettlement } from "../../src/objects/methods/provider-batch.ts";
import { makeUpstream } from "../unit/providers/make.ts";
import { BehavingProvider, TOKENS_EACH, type Behaviour } from "./batch-behaviours.ts";
import { alike, makeTarget, PLAIN_PRICE, seeded, success, TestEngine } from "./engine.ts";

const HOUR_MS = 3_600_000;
const CALL_MS = 20_000;
const POLL_MS = 60_000;
const START_MS = 1_763_712_000_000;
/** nano-USD of an answer at the standard tier: 1 a prompt token, 2 a completion token. */
export const STANDARD_NANO_USD = 3 * TOKENS_EACH;

const HALF = { inputPicoUsd: 500, cachedInputPicoUsd: 500, outputPicoUsd: 1_000 };
const TARGET = makeTarget({
  price: { ...PLAIN_PRICE, serviceTiers: { batch: HALF } },
  batch: { pollMs: POLL_MS, marginMs: null },
});

class Crash extends Error {}

export type BatchHistory = {
  behaviour: Behaviour;
  seed: number;
  slots: number;
  /** In which share of the steps the work crashes. */
  crashes: number;
};

export class BatchWorld {
  readonly engine = new TestEngine({ targets: [TARGET], width: 16, limits: { usd: 1e9 } });
  readonly group: Group;
  readonly provider: BehavingProvider;
  readonly deadlineAtMs = START_MS + HOUR_MS;
  nowMs = START_MS;
  readonly #history: BatchHistory;
  readonly #random: () => number;
  readonly #live = new Map<string, number>();
  #stored: string;
  #alarmMs: number | null = START_MS;

  constructor(history: BatchHistory) {
    this.#history = history;
    this.#random = seeded(history.seed * 7 + 1);
    this.provider = new BehavingProvider(history.behaviour, history.seed, () => this.nowMs);
    const timing = { openedAtMs: START_MS, deadlineMs: HOUR_MS };
    const liveMs = liveAtMs({ ...timing, count: history.slots, width: 16, marginMs: null });
    const facts = alike(history.slots, { wantedTier: "batch", maxTokens: TOKENS_EACH });
    this.group = this.engine.open(facts, { ...timing, liveAtMs: liveMs });
    const about = { isStopped: false, liveAtMs: liveMs, deadlineAtMs: this.deadlineAtMs, pollMs: POLL_MS };
    const job: ProviderJob = { runId: "run_1", seq: 1, about, nextPage: 1, claimAtMs: START_MS, parts: [] };
    this.#stored = JSON.stringify(job);
  }

  /** Live calls that were made. */
  liveCalls = 0;

  /** Runs until the group has ended and the work has, too. */
  async run(): Promise<void> {
    for (let turns = 0; !this.group.done || this.#alarmMs !== null; turns++) {
      if (turns > 100_000) throw new Error(`seed ${this.#history.seed} does not end`);
      if (this.#alarmMs !== null && this.#alarmMs <= this.nowMs) await this.#ring();
      this.#turn();
      this.nowMs = Math.max(this.nowMs + 1, Math.min(...this.#times()));
    }
  }

  *#times(): Generator<number> {
    yield this.deadlineAtMs + HOUR_MS;
    if (this.#alarmMs !== null) yield this.#alarmMs;
    yield* this.#live.values();
    const { queue } = this.engine.state;
    if (queue.nextDueMs !== null) yield queue.nextDueMs;
    const { provider } = this.group;
    if (provider !== null && provider.unclaimed.size > 0) yield provider.liveAtMs;
  }

  #turn(): void {
    const { state } = this.engine;
    for (const [attemptId, endsMs] of this.#live) {
      if (endsMs > this.nowMs) continue;
      this.#live.delete(attemptId);
      settle(state, attemptId, success({ promptTokens: TOKENS_EACH, completionTokens: TOKENS_EACH }), this.nowMs);
    }
    releaseUnclaimed(state, this.nowMs);
    for (const { lease } of this.engine.turn([512], this.nowMs).assignments) {
      this.liveCalls += 1;
      this.#live.set(lease.attemptId, this.nowMs + CALL_MS);
    }
  }

  async #ring(): Promise<void> {
    const job: ProviderJob = JSON.parse(this.#stored);
    const claim = (page: number): Promise<ProviderClaim> => Promise.resolve(this.#claim(page));
    const work = new ProviderWork(job, {
      claim: (page) => this.#step(() => claim(page)),
      settle: (settlement) => this.#step(() => Promise.resolve(this.#settle(settlement))),
      upstreamOf: () => makeUpstream(),
      provider: () => this.#crashing(),
      now: () => this.nowMs,
      store: (changed) => void (this.#stored = JSON.stringify(changed)),
    });
    try {
      this.#alarmMs = await work.ring();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      this.#alarmMs = this.nowMs + 10_000;
    }
  }

  /** A step whose reply is lost now and then, because whoever waits for it crashes. */
  async #step<Value>(step: () => Promise<Value>): Promise<Value> {
    if (this.#random() < this.#history.crashes) throw new Crash();
    const value = await step();
    if (this.#random() < this.#history.crashes) throw new Crash();
    return value;
  }

  #crashing(): BehavingProvider {
    const { provider } = this;
    return new Proxy(provider, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return (...args: unknown[]) => this.#step(() => Reflect.apply(method, target, args));
      },
    });
  }

  #about(): ProviderGroup {
    const { liveAtMs: liveMs = 0 } = this.group.header;
    return { isStopped: false, liveAtMs: liveMs, deadlineAtMs: this.deadlineAtMs, pollMs: POLL_MS };
  }

  #claim(page: number): ProviderClaim {
    const claimed = claimPage(this.engine.state, this.group, page, this.nowMs);
    if (!Array.isArray(claimed)) return { ...this.#about(), kind: claimed };
    const jobs = claimed.map((lease) => ({
      lease: leaseOf({ lease, timeoutMs: 60_000 }),
      callJson: '{"prompt":"hi"}',
    }));
    return { ...this.#about(), kind: "page", jobs, defaultsJson: "{}" };
  }

  #settle({ page, answers, rest, releases }: ProviderSettlement): ProviderGroup {
    const { state } = this.engine;
    for (const { index, outcome } of answers) settleAtProvider(state, this.group, { page, index, outcome }, this.nowMs);
    if (rest !== null) endPage(state, this.group, page, rest, this.nowMs);
    if (releases === true)
      for (const index of this.group.provider?.takeUnclaimed() ?? []) sendLive(state, this.group, index);
    return this.#about();
  }
}
