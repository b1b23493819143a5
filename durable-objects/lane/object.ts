/**
 * A lane executes a run's attempts, at most six at a time: Cloudflare lets an object wait for the headers of six fetches,
 * and queues the seventh silently. It keeps nothing: what it was lent expires in the run object if the lane dies, so it
 * opens no storage and needs no watchdog of its own.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { HEARTBEAT_MS, LANE_SLOTS } from "../../src/limits.ts";
import { attempt, type StartTimer } from "../../src/upstream/attempt.ts";
import { runOf, type Objects } from "../address.ts";
import type { RunObject } from "../run/object.ts";
import type { ClaimReply, Job, Settlement } from "../run/rpc.ts";
import { jobBody } from "./body.ts";
import { Worklist } from "./worklist.ts";

/** Delay before the run object is called again after a call that failed, ms; doubles up to the last. */
const RECONNECT_MS = [50, 200, 1_000, 5_000];

export class LaneObject extends DurableObject<Objects> {
  #work: Worklist | null = null;

  /**
   * Starts the lane for a run, or makes it ask for work again: returns at once. Safe to call at any time; a lane that is
   * about to end looks once more.
   */
  start(runId: string, lane: number): void {
    if (this.#work !== null) {
      this.#work.nudge();
      return;
    }
    const work = new Worklist();
    this.#work = work;
    const beat = setInterval(() => void this.#heartbeat(runId, work), HEARTBEAT_MS);
    const ended = this.#loop(runId, lane, work).finally(() => {
      clearInterval(beat);
      work.close();
      this.#work = null;
    });
    this.ctx.waitUntil(ended);
  }

  /**
   * Tells the attempts that this lane has, made or not told yet, and has it ask for more. Jobs that an earlier instance of
   * the run than `epoch` lends, in a reply that is still on its way, are not made: this one counts them as lost.
   */
  recall(runId: string, lane: number, epoch: number): string[] {
    const held = this.#work?.recall(epoch) ?? [];
    this.start(runId, lane);
    return held;
  }

  /** Stops attempts that were given up: their connections are closed. */
  abort(attemptIds: string[]): void {
    this.#work?.abort(attemptIds);
  }

  /** Claims, executes and settles until the run has nothing left for this lane. */
  async #loop(runId: string, lane: number, work: Worklist): Promise<void> {
    let run = runOf(this.env, runId);
    let ask = true;
    for (let failures = 0; ;) {
      const waits: boolean = work.hasEnded ? false : ask && work.running < LANE_SLOTS;
      if (!waits && !work.hasEnded) {
        if (work.idle) return;
        await work.changed();
        ask = true;
        if (!work.hasEnded) continue;
      }
      const claim = this.#claim(run, lane, work, waits);
      // What ends while a call waits for work must not wait with it: the next call answers this one. What ends while a
      // call settles travels with the next: so the busier the run, the more each call carries.
      const told: { ask: boolean } | "failed" | "changed" = await (waits
        ? Promise.race([claim, work.changed()])
        : claim);
      if (told === "changed") continue;
      if (told === "failed") {
        const delayMs = RECONNECT_MS[failures];
        if (delayMs === undefined) return;
        failures += 1;
        await scheduler.wait(delayMs);
        run = runOf(this.env, runId);
        continue;
      }
      failures = 0;
      ask = told.ask;
    }
  }

  /** Settles what has ended, and starts what comes back; `waits` for something to come back if nothing does at once. */
  async #claim(
    run: DurableObjectStub<RunObject>,
    lane: number,
    work: Worklist,
    waits: boolean,
  ): Promise<{ ask: boolean } | "failed"> {
    const settlements = work.takeEnded();
    try {
      const claim: ClaimReply = await run.settleAndClaim(lane, settlements, LANE_SLOTS, waits);
      work.delivered(settlements);
      if (claim.jobs.length > 0 && work.isReplaced(claim.epoch)) return { ask: true };
      if (claim.jobs.length > 0) work.lingerMs = claim.lingerMs;
      // Taken out of the reply: workerd keeps what a call returned until its next full collection.
      for (const job of claim.jobs.splice(0)) {
        const controller = new AbortController();
        const defaultsJson = claim.defaults[job.groupSeq] ?? "{}";
        work.add(job.lease.attemptId, controller, this.#execute(job, { defaultsJson, controller, timer: work.timer }));
      }
      return { ask: claim.ask };
    } catch {
      // The run object may or may not have committed. Settling twice changes nothing, so what ended is told again.
      work.putBack(settlements);
      return "failed";
    }
  }

  async #execute(
    job: Job,
    { defaultsJson, controller, timer }: { defaultsJson: string; controller: AbortController; timer: StartTimer },
  ): Promise<Settlement> {
    const { attemptId } = job.lease;
    const parsed = configOf(this.env);
    const upstream = parsed.ok ? parsed.config.upstreams.find(({ name }) => name === job.lease.upstream) : undefined;
    if (upstream === undefined) {
      const message = `upstream ${job.lease.upstream} is not configured any more`;
      const reason = parsed.ok ? ({ reason: "misconfigured", variable: "UPSTREAMS", message } as const) : parsed.reason;
      return { attemptId, outcome: { kind: "failure", class: "rejected", reason, retryAfterMs: null, latencyMs: 0 } };
    }
    const body = jobBody(job.callJson, defaultsJson);
    const outcome = await attempt({ upstream, lease: job.lease, body }, { fetch, now: Date.now, timer, controller });
    return { attemptId, outcome };
  }

  /** Keeps this lane's leases alive, and stops attempts that are no longer its own to make. */
  async #heartbeat(runId: string, work: Worklist): Promise<void> {
    if (work.running === 0) return;
    try {
      work.abort(await runOf(this.env, runId).heartbeat(work.attemptIds()));
    } catch {
      // The run object is restarting. A missed beat is harmless: a lease outlives two.
    }
  }
}
