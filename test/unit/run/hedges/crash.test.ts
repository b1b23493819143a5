/** Batches with hedges whose attempts end at random, and whose run is killed at random: what was not committed is lost. */
import { describe, expect, it } from "vitest";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import type { CallFacts, Outcome } from "../../../../src/call.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { dispatch } from "../../../../src/run/steps/dispatch.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import { startHedges } from "../../../../src/run/steps/start-hedges.ts";
import { loseAttempts, settle } from "../../../../src/run/steps/settle.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import { failure, makeHeader, makeTarget, seeded, success } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const COUNT = 60;
const WIDTH = 12;
const MODEL = "up/m";
const TARGET = makeTarget();
const FACTS: CallFacts = {
  ...{ promptBytes: 92, messageCount: 1, mediaParts: 0, model: MODEL, maxTokens: 100, priority: 2, timeoutMs: null },
  hedge: { after: 20, maxExtra: 1 },
};

class KilledRun {
  readonly #rows = new Rows();
  readonly #random: () => number;
  readonly #deps: EngineDeps;
  readonly #settings;
  state: EngineState;
  nowMs = 1_000;
  hedges = 0;
  kills = 0;
  /** Attempts that executors have, whether the run still knows of them or not. */
  readonly #sent = new Set<string>();
  /** What each slot ended with, at the first commit that has its end. */
  readonly ends = new Map<number, string>();

  constructor(seed: number, usd: number) {
    this.#random = seeded(seed);
    const builder = new CallPageBuilder({});
    const pages = [];
    for (let index = 0; index < COUNT; index++) {
      const page = builder.add({ body: { prompt: "p" }, facts: FACTS });
      if (page !== null) pages.push(page);
    }
    const last = builder.flush();
    if (last !== null) pages.push(last);
    const facts = readFacts(pages[0]?.facts ?? "[]", builder.models)[0];
    if (facts === undefined) throw new Error("the group has no calls");
    this.#deps = { random: this.#random, factsOf: () => facts, targetOf: () => TARGET };
    const limits = { ...NO_LIMITS, usd };
    this.#settings = settingsOf({ limits, width: WIDTH, seed, steps: [] });
    this.state = new EngineState(
      { ledger: new Ledger(limits), width: WIDTH, windowMs: 50, hasGates: true },
      this.#deps,
    );
    const header = makeHeader({ count: COUNT, openedAtMs: this.nowMs, models: builder.models });
    const kept = { openKey: "open", detach: true, errorStyle: "bracket", named: false } as const;
    this.#rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, pages);
    const group = this.state.openGroup(header);
    for (const page of pages) enqueueSlots(this.state, group, page.firstIndex, readFacts(page.facts, header.models));
  }

  /** A turn; it is committed, or the object dies before. */
  turn(): void {
    const { state } = this;
    this.nowMs += Math.ceil(this.#random() * 30);
    const lost = [...state.attempts.keys()].filter((attemptId) => !this.#sent.has(attemptId));
    loseAttempts(state, lost, this.nowMs);
    const all = [...this.#sent];
    for (const attemptId of all.filter(() => this.#random() < 0.3)) {
      this.#sent.delete(attemptId);
      settle(state, attemptId, this.#outcome(), this.nowMs);
    }
    const offers = new Map([[0, WIDTH]]);
    const hedges = startHedges(state, offers, this.nowMs);
    const { assignments } = dispatch(state, offers, this.nowMs);
    const { spent, reserved } = state.ledger;
    expect(spent.usd + reserved.usd).toBeLessThanOrEqual(this.#settings.limits.usd ?? Infinity);
    expect(state.attempts.size).toBeLessThanOrEqual(WIDTH);
    if (this.#random() < 0.1) return this.#kill();
    this.#rows.commit(state, this.nowMs, false);
    for (const { lease } of [...hedges, ...assignments]) this.#sent.add(lease.attemptId);
    this.hedges += hedges.length;
    this.#noteEnds();
  }

  get isDone(): boolean {
    return this.state.groups.get(1)?.done !== false;
  }

  #kill(): void {
    this.kills += 1;
    const targetOfLease = (): typeof TARGET => TARGET;
    this.state = this.#rows.rebuild(this.#settings, { ...this.#deps, targetOfLease }, this.nowMs);
    // What was settled in the turn that is lost is settled once more, or is lost with its executor.
    for (const attemptId of this.state.attempts.keys())
      if (this.#random() < 0.5) this.#sent.add(attemptId);
      else this.#sent.delete(attemptId);
    this.#noteEnds();
  }

  /** A slot that has ended stays so, with the same end. */
  #noteEnds(): void {
    const group = this.state.groups.get(1);
    if (group === undefined) return;
    for (let index = 0; index < COUNT; index++) {
      const now = group.stateOf(index);
      const before = this.ends.get(index);
      if (before !== undefined) expect([index, now]).toEqual([index, before]);
      else if (now === "completed" || now === "failed") this.ends.set(index, now);
    }
  }

  #outcome(): Outcome {
    const draw = this.#random();
    // No more than the lowest cap that is sent.
    if (draw < 0.7) return success({ promptTokens: 40, completionTokens: 16 }, 10);
    return failure(draw < 0.85 ? "transient" : "unknown");
  }
}

describe("a batch with hedges whose run is killed again and again", () => {
  it("keeps its budget and its width, ends each slot once, and leaves nothing reserved", { tags: ["slow"] }, () => {
    let hedges = 0;
    let kills = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const run = new KilledRun(seed, seed % 2 === 0 ? 1_000_000 : 16_000);
      for (let turns = 0; !run.isDone; turns++) {
        if (turns > 2_000) throw new Error(`seed ${seed} makes no progress`);
        run.turn();
      }
      const { ledger, attempts } = run.state;
      expect([ledger.reserved.usd, attempts.size, run.state.groups.get(1)?.inFlight ?? 0]).toEqual([0, 0, 0]);
      hedges += run.hedges;
      kills += run.kills;
    }
    expect(hedges).toBeGreaterThan(100);
    expect(kills).toBeGreaterThan(100);
  });
});
