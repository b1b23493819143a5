/**
 * A run's engine and instances of the gateway that hold credit of it, with messages between them that may be lost and
 * crashes on both sides. The upstream keeps its own bill. Seeded: the same history each time.
 */
import {
  DIMENSIONS,
  zeroAmounts,
  addAmounts,
  Ledger,
  NO_LIMITS,
  type Amounts,
  type Limits,
} from "../../src/run/money/ledger.ts";
import type { Usage } from "../../src/call.ts";
import { openCredit, restoreCredits, termsOf } from "../../src/run/steps/lend-credit.ts";
import { applyReport, expireCredits } from "../../src/run/steps/report-credit.ts";
import type { StoredCredit, CreditReport, CreditTerms } from "../../src/run/credit.ts";
import { dispatch } from "../../src/run/steps/dispatch.ts";
import { enqueueCall } from "../../src/run/steps/enqueue.ts";
import { RunLog, type LoggedEvent } from "../../src/run/log.ts";
import { restoreLease, restoreShard } from "../../src/run/steps/restore.ts";
import { expireLeases, settle } from "../../src/run/steps/settle.ts";
import { shardText, type StoredShard } from "../../src/run/leases/shard.ts";
import { EngineState } from "../../src/run/state.ts";
import { CreditHolder } from "../../src/objects/clients/credit/holder.ts";
import type { CreditReportReply } from "../../src/objects/methods/credit.ts";
import { makeFacts, makeTarget, seeded, success } from "./engine.ts";

const TARGET = makeTarget({ maxInFlight: 40 });

type Rows = { shards: Map<number, string>; credits: string; lastSeq: number };

/** A call in flight at the upstream, and what the upstream will bill for it. */
type Call = { attemptId: string; usage: Usage; isCredited: boolean };

type Instance = { name: string; holder: CreditHolder | null; calls: Call[]; isAsking: boolean };

/** A step of an exchange that has not happened yet. A crash drops those of the side that crashed. */
type Message = { instance: Instance; at: "object" | "instance"; deliver: () => void; lose: () => void };

export type CreditPlan = { seed: number; limits: Partial<Limits>; width: number; crashes: boolean };

export class CreditWorld {
  readonly bill: Amounts = zeroAmounts();
  readonly events: LoggedEvent[] = [];
  crashes = 0;
  /** Calls that credits have started: a test that starts none shows nothing. */
  credited = 0;
  nowMs = 1_000_000;
  state: EngineState;
  readonly #plan: CreditPlan;
  readonly #random: () => number;
  readonly #limits: Limits;
  #rows: Rows = { shards: new Map(), credits: "[]", lastSeq: 0 };
  #instances: Instance[] = [];
  #messages: Message[] = [];
  #count = 0;

  constructor(plan: CreditPlan) {
    this.#plan = plan;
    this.#random = seeded(plan.seed * 2_654_435_761);
    this.#limits = { ...NO_LIMITS, ...plan.limits };
    this.state = this.#build();
    for (const name of ["a", "b", "c"]) this.#instances.push(this.#newInstance(name));
  }

  /** Does one random thing. */
  step(): void {
    const instance = this.#pick(this.#instances);
    if (instance === undefined) return;
    const dice = this.#random();
    if (dice < 0.3) this.#start(instance);
    else if (dice < 0.56) this.#end(instance);
    else if (dice < 0.7) this.#report(instance, dice < 0.57);
    else if (dice < 0.9) this.#deliver();
    else if (dice < 0.94) this.nowMs += Math.floor(this.#random() * 200);
    else if (dice < 0.95) this.state.credits.recall();
    else if (!this.#plan.crashes) this.nowMs += 1;
    else if (dice < 0.965) this.#crashObject();
    else if (dice < 0.98) this.#crashInstance(instance);
    else if (dice < 0.99) this.#lose();
    else this.#wait(30_000);
  }

  /** Ends everything: calls, reports, and then the leases of what has crashed. */
  finish(): void {
    for (let round = 0; round < 100; round++) {
      for (const instance of this.#instances) {
        while (instance.calls.length > 0) this.#end(instance);
        this.#report(instance, true);
      }
      while (this.#messages.length > 0) this.#deliver();
      if (this.atUpstream === 0 && this.#instances.every(({ holder }) => holder === null)) break;
    }
    if (this.#plan.crashes) this.#wait(120_000);
    this.#commit(true);
  }

  /** Attempts in flight, and calls that credits may still start. */
  get inUse(): number {
    return this.state.attempts.size + this.state.credits.permits;
  }

  /** Calls at the upstream now, whose instances are alive. */
  get atUpstream(): number {
    return this.#instances.reduce((sum, { calls }) => sum + calls.length, 0);
  }

  #start(instance: Instance): void {
    this.#count += 1;
    const callId = `${instance.name}:${this.#count}`;
    const facts = makeFacts({
      promptBytes: 20 + Math.floor(this.#random() * 80),
      maxTokens: 10 + Math.floor(this.#random() * 40),
    });
    const started = instance.holder?.start({ callId, facts, onLost: "retry", target: TARGET }, this.nowMs) ?? null;
    if (started !== null) {
      this.credited += 1;
      this.#send(instance, started.lease.attemptId, started.lease.amounts, true);
      return;
    }
    // The run object decides, at once.
    const first = { attempt: 1, target: TARGET, deadlineMs: null, onLost: "retry", parallelGroupId: null } as const;
    enqueueCall(this.state, { callId, facts, ...first }, 0, this.nowMs);
    this.#dispatch();
    if (instance.holder === null && !instance.isAsking) this.#open(instance);
  }

  /** Starts what is queued. Calls go to the instance that has asked, if it still lives. */
  #dispatch(): void {
    const { assignments } = dispatch(this.state, new Map(), this.nowMs);
    this.#commit(false);
    for (const { lease } of assignments) {
      const instance = this.#instances.find(({ name }) => lease.attemptId.startsWith(`${name}:`));
      if (instance !== undefined) this.#send(instance, lease.attemptId, lease.amounts, false);
    }
  }

  /** The upstream bills at most what the request allows, and it bills whoever crashes. */
  #send(instance: Instance, attemptId: string, most: Amounts, isCredited: boolean): void {
    const promptTokens = 1 + Math.floor(this.#random() * most.prompt_tokens);
    const completionTokens = Math.floor(this.#random() * (most.completion_tokens + 1));
    const usage = { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
    const charge = {
      usd: promptTokens + 2 * completionTokens,
      calls: 1,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      new_tokens: promptTokens + completionTokens,
    };
    addAmounts(this.bill, charge);
    instance.calls.push({ attemptId, usage, isCredited });
  }

  #end(instance: Instance): void {
    const call = this.#pick(instance.calls);
    if (call === undefined) return;
    instance.calls.splice(instance.calls.indexOf(call), 1);
    const outcome = success(call.usage, 1);
    const known = instance.holder?.end({ attemptId: call.attemptId, outcome }, this.nowMs) ?? null;
    if (known !== null) return;
    this.#settle(instance, call.attemptId, call.usage);
  }

  /** A settlement is retried until it has arrived. */
  #settle(instance: Instance, attemptId: string, usage: Usage): void {
    const deliver = (): void => {
      settle(this.state, attemptId, success(usage, 1), this.nowMs);
      this.#dispatch();
      this.#commit(this.#random() < 0.5);
    };
    const message: Message = { instance, at: "object", deliver, lose: () => this.#messages.push(message) };
    this.#messages.push(message);
  }

  #open(instance: Instance): void {
    instance.isAsking = true;
    this.#count += 1;
    const creditId = `${instance.name}-${this.#count}`;
    const need = { usd: 200, calls: 1, prompt_tokens: 100, completion_tokens: 50, new_tokens: 150 };
    const lost = (): void => void (instance.isAsking = false);
    const deliver = (): void => {
      const credit = openCredit(this.state, { creditId, need, upstreams: [TARGET.upstream] }, this.nowMs);
      const terms = credit === null ? null : copied(termsOf(this.state, credit));
      this.#commit(false);
      const opened = (): void => {
        instance.isAsking = false;
        if (terms !== null) instance.holder = this.#holderOf(creditId, terms);
      };
      this.#messages.push({ instance, at: "instance", deliver: opened, lose: lost });
    };
    this.#messages.push({ instance, at: "object", deliver, lose: lost });
  }

  #holderOf(creditId: string, terms: CreditTerms): CreditHolder {
    const options = { creditId, upstreams: [TARGET.upstream], windowMs: 50, random: this.#random };
    return new CreditHolder({ ...options, terms: { ...terms, remainingNanoUsd: null } }, this.nowMs);
  }

  #report(instance: Instance, returns: boolean): void {
    const { holder } = instance;
    if (holder === null) return;
    const report: CreditReport = copied(holder.report(returns, this.nowMs));
    const lose = (): void => undefined;
    const deliver = (): void => {
      const end = applyReport(this.state, report, () => TARGET, this.nowMs);
      this.#dispatch();
      const credit = this.state.credits.get(report.creditId);
      const reply: CreditReportReply =
        end === "continue" && credit !== undefined
          ? { kind: "continue", terms: copied(termsOf(this.state, credit)), remainingNanoUsd: null }
          : { kind: end === "recalled" ? "recalled" : "ended" };
      this.#commit(false);
      const acknowledged = (): void => {
        const settlements = holder.acknowledged(report.number, reply, this.nowMs);
        for (const { attemptId, outcome } of settlements)
          if (outcome.kind === "success" && outcome.usage !== null) this.#settle(instance, attemptId, outcome.usage);
        if (holder.isEnded && instance.holder === holder) instance.holder = null;
      };
      this.#messages.push({ instance, at: "instance", deliver: acknowledged, lose });
    };
    this.#messages.push({ instance, at: "object", deliver, lose });
  }

  #deliver(): void {
    const message = this.#pick(this.#messages);
    if (message === undefined) return;
    this.#messages.splice(this.#messages.indexOf(message), 1);
    message.deliver();
  }

  #lose(): void {
    const message = this.#pick(this.#messages);
    if (message === undefined) return;
    this.#messages.splice(this.#messages.indexOf(message), 1);
    message.lose();
  }

  /** Only what was written survives, and every call to the object fails. */
  #crashObject(): void {
    this.crashes += 1;
    const failed = this.#messages.filter(({ at }) => at === "object");
    this.#messages = this.#messages.filter(({ at }) => at !== "object");
    for (const { lose } of failed) lose();
    this.state = this.#build();
  }

  /** Its calls are billed and never reported. */
  #crashInstance(instance: Instance): void {
    this.crashes += 1;
    this.#messages = this.#messages.filter((message) => message.instance !== instance);
    this.#instances = this.#instances.map((other) =>
      other === instance ? this.#newInstance(`${instance.name}'`) : other,
    );
  }

  #wait(ms: number): void {
    this.nowMs += ms;
    expireLeases(this.state, this.nowMs);
    expireCredits(this.state, this.nowMs);
    this.#commit(false);
  }

  #newInstance(name: string): Instance {
    return { name, holder: null, calls: [], isAsking: false };
  }

  #build(): EngineState {
    const { width } = this.#plan;
    const deps = { random: this.#random, factsOf: () => makeFacts(), targetOf: () => TARGET };
    const state = new EngineState(
      { ledger: new Ledger(this.#limits), width, windowMs: 50, log: new RunLog(this.#rows.lastSeq) },
      deps,
    );
    for (const [id, row] of this.#rows.shards) {
      const stored: StoredShard = JSON.parse(row);
      const shard = restoreShard(state, id, stored);
      for (const lease of stored.leases) restoreLease(state, shard, lease, TARGET, this.nowMs);
    }
    const credits: StoredCredit[] = JSON.parse(this.#rows.credits);
    restoreCredits(state, credits, this.nowMs);
    return state;
  }

  /** Writes as a turn does: what must be durable before the reply, and what waits for that, in one transaction. */
  #commit(flush: boolean): void {
    if (!this.state.mustWrite && !flush) return;
    const { shards, credits } = this.state.takeWrites();
    for (const shard of shards) this.#rows.shards.set(shard.id, shardText(shard));
    if (credits !== null) this.#rows.credits = JSON.stringify(credits);
    const { rows } = this.state.log.write({ carrier: null, asRows: true });
    if (rows === null) return;
    this.#rows.lastSeq = rows.lastSeq;
    this.events.push(...rows.events);
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }
}

/** What a message is after it has crossed from one isolate to another. */
function copied<T>(value: T): T {
  return structuredClone(value);
}

/** The first dimension in which more is committed, or billed, than the limit. */
export function overLimit({ ledger }: EngineState, bill: Amounts): string | null {
  for (const dimension of DIMENSIONS) {
    const limit = ledger.limits[dimension];
    if (limit === null) continue;
    if (ledger.committed(dimension) > limit)
      return `${dimension}: ${ledger.committed(dimension)} of ${limit} committed`;
    if (bill[dimension] > ledger.committed(dimension))
      return `${dimension}: ${bill[dimension]} billed, ${ledger.committed(dimension)} committed`;
  }
  return null;
}
