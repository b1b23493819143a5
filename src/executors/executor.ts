/**
 * The loop of an executor: it claims attempts of one run, makes them, and settles them, until the run has nothing left for
 * it. It stores nothing: if it dies, its leases expire in the run object. Lanes run it, and the Worker of a group's client;
 * a `Duty` is what differs between them.
 */
import { BEGUN_AT_ONCE_MAX, CALL_SOCKET_AFTER_MS, HEARTBEAT_AFTER_SOCKET_MS, HEARTBEAT_MS } from "../limits.ts";
import { objectFailure } from "../objects/clients/retry.ts";
import type { ClaimReply, Job, Settlement, WorkerState } from "../objects/methods/groups.ts";
import type { Attempt } from "./attempt.ts";
import type { Paces } from "./paces.ts";
import { Reconnect } from "./reconnect.ts";
import type { WorkRules } from "./rules.ts";
import { Worklist, type Begun } from "./worklist.ts";
import { RenewedSet } from "../renewed/set.ts";

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
  /** Renews leases where the run does not do so at the socket; resolves with the attempts that must stop. */
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
  /** What the executor names at each socket: its attempts, and those whose settlement may not have arrived. */
  holds: () => string[];
  /** The run has renewed the leases of what it was named, but for those that are lost: they must stop. */
  held: (lost: string[]) => void;
};

export type ExecutorSocket = { close: () => void };

/**
 * What an executor does next: settle and claim, the same and wait for work, nothing until something changes; `leave` once no
 * reply is on its way, which could bring attempts; or end at once.
 */
export type Step = "claim" | "wait" | "idle" | "leave" | "end";

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
  /**
   * Whether slots may wait, as far as the executor knows: after each reply, and when the run signals it. A reply alone does not
   * say so: one that is outdated says that nothing is left.
   */
  slotsWait: (mayWait: boolean, work: Worklist) => void;
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
  #windsDown = false;
  /** Whether the run signals what there is to wait for. */
  #waitsAtSocket = false;
  /** Whether the run has signalled since the last claim left: a signal may overtake the reply to a claim that precedes it. */
  #isSignalled = false;
  /** Whether the last call that failed met a run with too many requests. */
  #isOverloaded = false;
  #beat: ReturnType<typeof setTimeout> | null = null;
  /** Claims without a reply so far. One that waits has none when the next is sent. */
  readonly #pending = new RenewedSet<Promise<unknown>>();
  /** Number of claims that were sent, and that of the last which named all attempts that the executor has. */
  #sent = 0;
  #named = 0;
  /** The number of claims that were sent when attempts came last: those claims counted less than the executor has. */
  #unaware = 0;

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

  /**
   * Nobody waits for answers any more: each attempt in flight goes on for the time that `lastsMs` grants it, and what is granted
   * from now on is not sent.
   */
  windDown(lastsMs: (begun: Begun) => number): void {
    this.#windsDown = true;
    this.#work.windDown(lastsMs);
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
    this.#heartbeatAfter(HEARTBEAT_MS);
    let socket: ExecutorSocket | null = null;
    const openSocket = (): void => {
      socket = this.#deps.openSocket({
        slotsWait: () => this.#slotsWait(),
        mustClaim: () => this.#mustClaim(),
        holds: () => this.#work.held(),
        held: (lost) => this.#held(lost),
      });
    };
    const untilSocket = setTimeout(openSocket, CALL_SOCKET_AFTER_MS);
    try {
      if (first !== null) {
        const worker = this.#duty.stateOf(this.#work);
        this.#replied(first, { number: (this.#sent += 1), settlements: [], waits: false, worker, reach: null });
        // On plain workerd the run object is in this thread: the next claim would hold what has just begun.
        if (this.#claimMore && this.#work.running > 0 && this.#work.room > 0) await this.#deps.wait(0);
      }
      await this.#loop();
    } finally {
      if (this.#beat !== null) clearTimeout(this.#beat);
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
      const step = this.#next();
      if (step === "end") return;
      if (step === "leave") {
        if (this.#pending.size === 0) return;
        await Promise.race([...this.#pending, work.changed()]);
        continue;
      }
      if (step === "idle") {
        await work.changed(this.#claimMore);
        continue;
      }
      const claim = this.#claim(step === "wait");
      this.#pending.add(claim);
      void claim.then(() => this.#pending.delete(claim));
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

  #next(): Step {
    const work = this.#work;
    const step = this.#duty.next(work, this.#claimMore);
    // One that is nudged claims wherever it waits: it would be woken at once, again and again.
    if (step !== "wait" || !this.#waitsAtSocket || work.isNudged) return step;
    return work.idle && !this.#duty.waitsWithoutCalls ? "leave" : "idle";
  }

  /** Settles what has ended, and starts the jobs of the reply; `waits` for jobs if there are none at once. */
  async #claim(waits: boolean): Promise<"replied" | "failed"> {
    const work = this.#work;
    const settlements = work.takeEnded();
    const worker = this.#duty.stateOf(work);
    const capacity = work.running + work.room;
    this.#isSignalled = false;
    const reach = this.#duty.reach();
    const number = (this.#sent += 1);
    if (worker?.holds != null) this.#named = number;
    try {
      const reply = await this.#deps.claim({ settlements, capacity, waits, worker, reach });
      work.delivered(settlements);
      this.#replied(reply, { number, settlements, waits, worker, reach });
      return "replied";
    } catch (error) {
      const failure = objectFailure(error);
      this.#isOverloaded = failure === "overloaded" || failure === "full";
      // The run object may or may not have committed. Settling twice changes nothing, so what ended is settled once more.
      work.putBack(settlements);
      this.#duty.failed();
      return "failed";
    }
  }

  #replied(reply: ClaimReply, claim: Omit<Claim, "capacity"> & { number: number }): void {
    const work = this.#work;
    const hasJobs = reply.jobs.length > 0;
    // What it grants is lost if a later claim did not name it.
    const isLate = hasJobs && (claim.number < this.#named || work.isReplaced(reply.epoch));
    // The run counted the attempts of an earlier reply, so that it saw no room where there may be some.
    const isOutdated = claim.waits && claim.number <= this.#unaware;
    if (hasJobs) this.#unaware = this.#sent;
    this.#claimMore = reply.claimMore || isLate || isOutdated || this.#isSignalled;
    this.#waitsAtSocket = reply.atSocket === true && !isOutdated && !this.#isSignalled;
    if (!isLate) {
      if (reply.jobs.length > 0) work.setBatchingDelay(reply.batchingDelayMs);
      // Taken out of the reply: workerd keeps what a call returned until its next full collection.
      this.#beginAll(reply.jobs.splice(0), reply.defaults);
    }
    work.setGathering(reply.group?.awaitsEnd === true && !this.#claimMore);
    this.#duty.replied(reply, claim, work);
    this.#duty.slotsWait(this.#claimMore, work);
  }

  /** Begins attempts, in pieces: each leaves before the next one begins. All count as in flight at once. */
  #beginAll(jobs: readonly Job[], defaults: ClaimReply["defaults"]): void {
    let turn: Promise<void> | null = null;
    for (const [index, job] of jobs.entries()) {
      if (index > 0 && index % BEGUN_AT_ONCE_MAX === 0) turn = this.#turnAfter(turn);
      this.#begin(job, defaults[job.groupSeq] ?? "{}", turn);
    }
  }

  async #turnAfter(turn: Promise<void> | null): Promise<void> {
    await turn;
    await this.#deps.wait(0);
  }

  /** `turn`: when it may begin; null = at once. */
  #begin(job: Job, defaultsJson: string, turn: Promise<void> | null): void {
    const { lease } = job;
    const { now, paces, execute } = this.#deps;
    const work = this.#work;
    const model = `${lease.upstream}/${lease.model}`;
    const controller = new AbortController();
    if (this.#windsDown) controller.abort();
    const requests = (isJson: boolean): void => paces.requests(model, isJson);
    const headersArrived = (): void => work.headersArrived(lease.attemptId, now());
    const attempt = { lease, controller, timer: work.timer, requests, headersArrived };
    const begun = { model, startedMs: now(), capTokens: lease.capTokens, hedgeOf: lease.hedgeOf };
    const execution = (): Promise<Settlement> => execute(job, defaultsJson, attempt);
    work.add(lease.attemptId, begun, controller, turn === null ? execution() : turn.then(execution));
  }

  #slotsWait(): void {
    this.#isSignalled = true;
    this.#claimMore = true;
    this.#waitsAtSocket = false;
    this.#work.setGathering(false);
    this.#work.offerRoom();
    this.#duty.slotsWait(true, this.#work);
  }

  #mustClaim(): void {
    this.#isSignalled = true;
    this.#waitsAtSocket = false;
    this.#work.nudge();
  }

  #held(lost: string[]): void {
    this.#work.abort(lost);
    this.#heartbeatAfter(HEARTBEAT_AFTER_SOCKET_MS);
  }

  /** Sends heartbeats from `delayMs` on, unless the run renews the leases at the socket by then. */
  #heartbeatAfter(delayMs: number): void {
    if (this.#beat !== null) clearTimeout(this.#beat);
    this.#beat = setTimeout(() => {
      void this.#heartbeat();
      this.#heartbeatAfter(HEARTBEAT_MS);
    }, delayMs);
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
