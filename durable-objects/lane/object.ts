/**
 * A lane executes a run's attempts, at most six at a time: Cloudflare lets an object wait for the headers of six fetches,
 * and queues the seventh silently. It stores nothing: if the lane dies, its leases expire in the run object, so it needs
 * no watchdog of its own. Its methods are described in src/run-api/lane-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { readCall } from "../../src/engine/call-page.ts";
import { configOf } from "../../src/env.ts";
import { attemptCall, unsent } from "../../src/execute/attempt.ts";
import { HEARTBEAT_MS, LANE_SLOTS } from "../../src/limits.ts";
import type { ClaimReply, Job, Settlement } from "../../src/run-api/groups.ts";
import type { LaneApi } from "../../src/run-api/lane-api.ts";
import { RunCaller, type RunStub } from "../../src/run-client/caller.ts";
import type { StartTimer } from "../../src/upstream/exchange.ts";
import { runOf, type Objects } from "../address.ts";
import { Reconnect } from "./reconnect.ts";
import { Worklist } from "./worklist.ts";

export class LaneObject extends DurableObject<Objects> implements LaneApi {
  #work: Worklist | null = null;

  start(runId: string, lane: number): void {
    if (this.#work !== null) {
      // A lane that is about to stop claims once more.
      this.#work.nudge();
      return;
    }
    const work = new Worklist();
    this.#work = work;
    const heartbeats = setInterval(() => void this.#heartbeat(runId, work), HEARTBEAT_MS);
    const ended = this.#loop(runId, lane, work).finally(() => {
      clearInterval(heartbeats);
      work.close();
      this.#work = null;
    });
    this.ctx.waitUntil(ended);
  }

  reconcileLeases(runId: string, lane: number, epoch: number): string[] {
    const attemptIds = this.#work?.reconcile(epoch) ?? [];
    this.start(runId, lane);
    return attemptIds;
  }

  abort(attemptIds: string[]): void {
    this.#work?.abort(attemptIds);
  }

  /** Claims, executes and settles until the run has nothing left for this lane. */
  async #loop(runId: string, lane: number, work: Worklist): Promise<void> {
    let run = runOf(this.env, runId);
    let claimMore = true;
    const reconnect = new Reconnect();
    for (;;) {
      const waits: boolean = work.hasEnded ? false : claimMore && work.running < LANE_SLOTS;
      if (!waits && !work.hasEnded) {
        if (work.idle) return;
        await work.changed();
        claimMore = true;
        if (!work.hasEnded) continue;
      }
      const claim = this.#claim(run, lane, work, waits);
      // What ends while a call waits for work must not wait with it: the next call makes the run reply to this one. What
      // ends while a call settles travels with the next: so the busier the run, the more each call carries.
      const reply: { claimMore: boolean } | "failed" | "changed" = await (waits
        ? Promise.race([claim, work.changed()])
        : claim);
      if (reply === "changed") continue;
      if (reply === "failed") {
        const delayMs = reconnect.failed(work.running > 0 || work.hasEnded, Date.now(), Math.random);
        if (delayMs === null) return;
        // A run that is back reconciles its leases with its lanes: then there is no reason to wait.
        await Promise.race([scheduler.wait(delayMs), work.nudged()]);
        run = runOf(this.env, runId);
        continue;
      }
      reconnect.succeeded();
      claimMore = reply.claimMore;
    }
  }

  /** Settles what has ended, and starts the jobs of the reply; `waits` for jobs if there are none at once. */
  async #claim(run: RunStub, lane: number, work: Worklist, waits: boolean): Promise<{ claimMore: boolean } | "failed"> {
    const settlements = work.takeEnded();
    try {
      const claim: ClaimReply = await run.settleAndClaim(lane, settlements, LANE_SLOTS, waits);
      work.delivered(settlements);
      if (claim.jobs.length > 0 && work.isReplaced(claim.epoch)) return { claimMore: true };
      if (claim.jobs.length > 0) work.setBatchingDelay(claim.batchingDelayMs);
      // Taken out of the reply: workerd keeps what a call returned until its next full collection.
      for (const job of claim.jobs.splice(0)) {
        const controller = new AbortController();
        const defaultsJson = claim.defaults[job.groupSeq] ?? "{}";
        work.add(job.lease.attemptId, controller, this.#execute(job, { defaultsJson, controller, timer: work.timer }));
      }
      return { claimMore: claim.claimMore };
    } catch {
      // The run object may or may not have committed. Settling twice changes nothing, so what ended is settled once more.
      work.putBack(settlements);
      return "failed";
    }
  }

  async #execute(
    job: Job,
    { defaultsJson, controller, timer }: { defaultsJson: string; controller: AbortController; timer: StartTimer },
  ): Promise<Settlement> {
    const { lease } = job;
    const { attemptId } = lease;
    const parsed = configOf(this.env);
    if (!parsed.ok) return { attemptId, outcome: unsent(parsed.reason) };
    const { upstreams, waitingFetchesMax } = parsed.config;
    const headersLimited = waitingFetchesMax <= LANE_SLOTS;
    const body = readCall(job.callJson, defaultsJson);
    const outcome = await attemptCall({ lease, controller, timer }, body, { upstreams, headersLimited });
    return { attemptId, outcome };
  }

  /** Renews this lane's leases, and aborts attempts whose lease is not this lane's any more. */
  async #heartbeat(runId: string, work: Worklist): Promise<void> {
    if (work.running === 0) return;
    try {
      work.abort(await new RunCaller(this.env, runId).callOnce<string[]>((run) => run.heartbeat(work.attemptIds())));
    } catch {
      // The run object is restarting. A missed heartbeat is harmless: a lease outlives two.
    }
  }
}
