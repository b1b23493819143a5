/**
 * The loop of an executor: it claims attempts of one run, makes them, and settles them, until the run has nothing left for
 * it. It stores nothing: if it dies, its leases expire in the run object. Lanes run it, and the Worker of a group's client;
 * a `Duty` is what differs between them.
 */
import { CALL_SOCKET_AFTER_MS, HEARTBEAT_MS } from "../limits.ts";
import { objectFailure } from "../run-client/retry.ts";
import type { ClaimReply, Job, Settlement, WorkerState } from "../run-api/groups.ts";
import type { Attempt } from "./attempt.ts";
import type { Paces } from "./paces.ts";
import { Reconnect } from "./reconnect.ts";
import type { WorkRules } from "./rules.ts";
import { Worklist } from "./worklist.ts";

/**
 * What a claim requests: attempts until the executor has `capacity`; `waits` for some if there are none at once. `worker`
 * null = it is a lane. `reach`: how many calls it can have in flight while headers keep it from more; null = as far as it
 * knows, nothing does.
 */
export type Claim = {
  settlements: Settlement[];
  capacity: number;
  waits: boolean;
  worker: WorkerState | null;
  reach: number | null;
};

export type ExecutorDeps = {
  /** Calls the run object once. It rejects if the object cannot be reached. */
  claim: (claim: Claim) => Promise<ClaimReply>;
  /** Opens a socket to the run, which signals what a claim would bring. */
  openSocket: (listener: ExecutorListener) => ExecutorSocket;
  /** Renews leases; resolves with the attempts that must stop. */
  heartbeat: (attemptIds: string[]) => Promise<string[]>;
  /** Makes the attempt of a job. It never rejects. `defaultsJson`: the settings that the job's group shares. */
  execute: (job: Job, defaultsJson: string, attempt: Attempt) => Promise<Settlement>;
  /** What this isolate knows of the calls of each model. */
  paces: Paces;
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
  wait: (ms: number) => Promise<void>;
};

/** What the socket of an executor is called with. */
export type ExecutorListener = {
  /** Slots wait for an executor with room. */
  slotsWait: () => void;
  /** A claim brings something new, or nobody can say: the run gives no socket. */
  mustClaim: () => void;
};

export type ExecutorSocket = { close: () => void };

/** What an executor does next: settle and claim, the same and wait for work, nothing until something changes, or end. */
export type Step = "claim" | "wait" | "idle" | "end";

/** What differs between executors. */
export type Duty = {
  /** Never `idle` while another claim is requested: the executor would not wait. */
  next: (work: Worklist, claimMore: boolean) => Step;
  /** What a claim says of the executor. */
  stateOf: (work: Worklist) => WorkerState | null;
  /** How many calls the executor can have in flight, if it has been full; else null. */
  reach: () => number | null;
  /** A reply has come, and its jobs have begun; `claim` is what it replies to. */
  replied: (reply: ClaimReply, claim: Pick<Claim, "settlements" | "worker" | "reach">, work: Worklist) => void;
  /** Whether it waits at its socket while it has no calls; else it ends, and the run starts it when it needs it. */
  readonly waitsWithoutCalls: boolean;
  /** A claim has failed: the run may have committed it or not. */
  failed: () => void;
  /** The executor has ended. */
  close: () => void;
};

export class Executor {
  readonly #deps: ExecutorDeps;
  readonly #duty: Duty;
  readonly #work: Worklist;
  #claimMore = true;
  /** Whether the run signals what there is to wait for. */
  #waitsAtSocket = false;
  /** Whether the run has signalled since the last claim left: a signal may overtake the reply to a claim that precedes it. */
  #isSignalled = false;
  /** Whether the last call that failed met a run with too many requests. */
  #isOverloaded = false;

  constructor(deps: ExecutorDeps, rules: WorkRules, duty: Duty) {
    this.#deps = deps;
    this.#duty = duty;
    this.#work = new Worklist(rules, deps.paces);
  }

  /** Makes the executor claim once more, if it is about to stop. */
  nudge(): void {
    this.#work.nudge();
  }

  /** Aborts attempts: each ends with the outcome of an aborted attempt. */
  abort(attemptIds: readonly string[]): void {
    this.#work.abort(attemptIds);
  }

  /** The attempts in flight. */
  attemptIds(): string[] {
    return this.#work.attemptIds();
  }

  /** Every attempt that is in flight or whose settlement may not have arrived. Jobs of instances before `epoch` are late. */
  reconcile(epoch: number): string[] {
    return this.#work.reconcile(epoch);
  }

  /**
   * Claims, executes and settles until the run has nothing left for this executor. `first`: the reply to a claim that was
   * made before. Call it once.
   */
  async run(first: ClaimReply | null = null): Promise<void> {
    const heartbeats = setInterval(() => void this.#heartbeat(), HEARTBEAT_MS);
    let socket: ExecutorSocket | null = null;
    const openSocket = (): void => {
      socket = this.#deps.openSocket({ slotsWait: () => this.#slotsWait(), mustClaim: () => this.#mustClaim() });
    };
    const untilSocket = setTimeout(openSocket, CALL_SOCKET_AFTER_MS);
    try {
      if (first !== null) {
        this.#replied(first, { settlements: [], worker: this.#duty.stateOf(this.#work), reach: null });
      }
      await this.#loop();
    } finally {
      clearInterval(heartbeats);
      clearTimeout(untilSocket);
      (socket as ExecutorSocket | null)?.close();
      this.#work.close();
      this.#duty.close();
    }
  }

  async #loop(): Promise<void> {
    const work = this.#work;
    const { now, random, wait } = this.#deps;
    const reconnect = new Reconnect();
    for (;;) {
      const step = this.#duty.next(work, this.#claimMore);
      if (step === "end") return;
      // One that is nudged claims wherever it waits: it would be woken at once, again and again.
      if (step === "idle" || (step === "wait" && this.#waitsAtSocket && !work.isNudged)) {
        if (step === "wait" && work.idle && !this.#duty.waitsWithoutCalls) return;
        await work.changed(this.#claimMore);
        continue;
      }
      const claim = this.#claim(step === "wait");
      // What ends while a call waits for work must not wait with it: the next call makes the run reply to this one. What
      // ends while a call settles travels with the next: so the busier the run, the more each call carries.
      const reply: "replied" | "failed" | "changed" = await (step === "wait"
        ? Promise.race([claim, work.changed()])
        : claim);
      if (reply === "replied") reconnect.succeeded();
      if (reply !== "failed") continue;
      const delayMs = reconnect.failed(
        { keeps: work.running > 0 || work.hasEnded, isOverloaded: this.#isOverloaded },
        now(),
        random,
      );
      if (delayMs === null) return;
      // A run that is back reconciles its leases with its lanes: then there is no reason to wait.
      await Promise.race([wait(delayMs), work.nudged()]);
    }
  }

  /** Settles what has ended, and starts the jobs of the reply; `waits` for jobs if there are none at once. */
  async #claim(waits: boolean): Promise<"replied" | "failed"> {
    const work = this.#work;
    const settlements = work.takeEnded();
    const worker = this.#duty.stateOf(work);
    const capacity = work.running + work.room;
    this.#isSignalled = false;
    const reach = this.#duty.reach();
    try {
      const reply = await this.#deps.claim({ settlements, capacity, waits, worker, reach });
      work.delivered(settlements);
      this.#replied(reply, { settlements, worker, reach });
      return "replied";
    } catch (error) {
      this.#isOverloaded = objectFailure(error) === "overloaded";
      // The run object may or may not have committed. Settling twice changes nothing, so what ended is settled once more.
      work.putBack(settlements);
      this.#duty.failed();
      return "failed";
    }
  }

  #replied(reply: ClaimReply, claim: Pick<Claim, "settlements" | "worker" | "reach">): void {
    const work = this.#work;
    const isLate = reply.jobs.length > 0 && work.isReplaced(reply.epoch);
    this.#claimMore = reply.claimMore || isLate || this.#isSignalled;
    this.#waitsAtSocket = reply.atSocket === true && !this.#isSignalled;
    if (!isLate) {
      if (reply.jobs.length > 0) work.setBatchingDelay(reply.batchingDelayMs);
      // Taken out of the reply: workerd keeps what a call returned until its next full collection.
      for (const job of reply.jobs.splice(0)) this.#begin(job, reply.defaults[job.groupSeq] ?? "{}");
    }
    this.#duty.replied(reply, claim, work);
  }

  #begin(job: Job, defaultsJson: string): void {
    const { lease } = job;
    const { now, paces, execute } = this.#deps;
    const work = this.#work;
    const model = `${lease.upstream}/${lease.model}`;
    const controller = new AbortController();
    const requests = (isJson: boolean): void => paces.requests(model, isJson);
    const headersArrived = (): void => work.headersArrived(lease.attemptId, now());
    const attempt = { lease, controller, timer: work.timer, requests, headersArrived };
    work.add(lease.attemptId, { model, startedMs: now() }, controller, execute(job, defaultsJson, attempt));
  }

  #slotsWait(): void {
    this.#isSignalled = true;
    this.#claimMore = true;
    this.#waitsAtSocket = false;
    this.#work.offerRoom();
  }

  #mustClaim(): void {
    this.#isSignalled = true;
    this.#waitsAtSocket = false;
    this.#work.nudge();
  }

  /** Renews the executor's leases, and aborts attempts whose lease is not its own any more. */
  async #heartbeat(): Promise<void> {
    const work = this.#work;
    if (work.running === 0) return;
    try {
      work.abort(await this.#deps.heartbeat(work.attemptIds()));
    } catch {
      // The run object is restarting. A missed heartbeat is harmless: a lease outlives two.
    }
  }
}
