/**
 * The loop of an executor: it claims attempts of one run, makes them, and settles them, until the run has nothing left for
 * it. It stores nothing: if it dies, its leases expire in the run object. Lanes run it; what differs between executors is
 * in `ExecutorDeps`.
 */
import type { ClaimReply, Job, Settlement } from "../run-api/groups.ts";
import type { Attempt } from "./attempt.ts";
import { Reconnect } from "./reconnect.ts";
import { Worklist } from "./worklist.ts";

/** What a claim requests: attempts until the executor has `capacity`; `waits` for some if there are none at once. */
export type Claim = { settlements: Settlement[]; capacity: number; waits: boolean };

export type ExecutorDeps = {
  /** Calls the run object once. It rejects if the object cannot be reached. */
  claim: (claim: Claim) => Promise<ClaimReply>;
  /** Renews leases; resolves with the attempts that must stop. */
  heartbeat: (attemptIds: string[]) => Promise<string[]>;
  /** Makes the attempt of a job. It never rejects. `defaultsJson`: the settings that the job's group shares. */
  execute: (job: Job, defaultsJson: string, attempt: Attempt) => Promise<Settlement>;
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
  wait: (ms: number) => Promise<void>;
};

/** Attempts that an executor may hold at once. */
export type ExecutorRules = { callsMax: number };

export class Executor {
  readonly #deps: ExecutorDeps;
  readonly #rules: ExecutorRules;
  readonly #work = new Worklist();

  constructor(deps: ExecutorDeps, rules: ExecutorRules) {
    this.#deps = deps;
    this.#rules = rules;
  }

  /** Makes the executor claim once more, if it is about to stop. */
  nudge(): void {
    this.#work.nudge();
  }

  /** Aborts attempts: each ends with the outcome of an aborted attempt. */
  abort(attemptIds: readonly string[]): void {
    this.#work.abort(attemptIds);
  }

  /** Every attempt that is in flight or whose settlement may not have arrived. Jobs of instances before `epoch` are late. */
  reconcile(epoch: number): string[] {
    return this.#work.reconcile(epoch);
  }

  /** Renews the executor's leases, and aborts attempts whose lease is not its own any more. Call it every HEARTBEAT_MS. */
  async heartbeat(): Promise<void> {
    const work = this.#work;
    if (work.running === 0) return;
    try {
      work.abort(await this.#deps.heartbeat(work.attemptIds()));
    } catch {
      // The run object is restarting. A missed heartbeat is harmless: a lease outlives two.
    }
  }

  /** Claims, executes and settles until the run has nothing left for this executor. Call it once. */
  async run(): Promise<void> {
    try {
      await this.#loop();
    } finally {
      this.#work.close();
    }
  }

  async #loop(): Promise<void> {
    const work = this.#work;
    const { now, random, wait } = this.#deps;
    const reconnect = new Reconnect();
    let claimMore = true;
    for (;;) {
      const waits: boolean = work.hasEnded ? false : claimMore && work.running < this.#rules.callsMax;
      if (!waits && !work.hasEnded) {
        if (work.idle) return;
        await work.changed();
        claimMore = true;
        if (!work.hasEnded) continue;
      }
      const claim = this.#claim(waits);
      // What ends while a call waits for work must not wait with it: the next call makes the run reply to this one. What
      // ends while a call settles travels with the next: so the busier the run, the more each call carries.
      const reply: { claimMore: boolean } | "failed" | "changed" = await (waits
        ? Promise.race([claim, work.changed()])
        : claim);
      if (reply === "changed") continue;
      if (reply === "failed") {
        const delayMs = reconnect.failed(work.running > 0 || work.hasEnded, now(), random);
        if (delayMs === null) return;
        // A run that is back reconciles its leases with its lanes: then there is no reason to wait.
        await Promise.race([wait(delayMs), work.nudged()]);
        continue;
      }
      reconnect.succeeded();
      claimMore = reply.claimMore;
    }
  }

  /** Settles what has ended, and starts the jobs of the reply; `waits` for jobs if there are none at once. */
  async #claim(waits: boolean): Promise<{ claimMore: boolean } | "failed"> {
    const work = this.#work;
    const settlements = work.takeEnded();
    try {
      const claim = await this.#deps.claim({ settlements, capacity: this.#rules.callsMax, waits });
      work.delivered(settlements);
      if (claim.jobs.length > 0 && work.isReplaced(claim.epoch)) return { claimMore: true };
      if (claim.jobs.length > 0) work.setBatchingDelay(claim.batchingDelayMs);
      // Taken out of the reply: workerd keeps what a call returned until its next full collection.
      for (const job of claim.jobs.splice(0)) {
        const controller = new AbortController();
        const attempt = { lease: job.lease, controller, timer: work.timer };
        const settlement = this.#deps.execute(job, claim.defaults[job.groupSeq] ?? "{}", attempt);
        work.add(job.lease.attemptId, controller, settlement);
      }
      return { claimMore: claim.claimMore };
    } catch {
      // The run object may or may not have committed. Settling twice changes nothing, so what ended is settled once more.
      work.putBack(settlements);
      return "failed";
    }
  }
}
