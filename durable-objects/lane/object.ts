/**
 * A lane executes a run's attempts, at most six at a time: Cloudflare lets an object wait for the headers of six fetches,
 * and queues the seventh silently. It stores nothing: if the lane dies, its leases expire in the run object, so it needs
 * no watchdog of its own. Its methods are described in src/run-api/lane-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { unsent, type Attempt } from "../../src/execute/attempt.ts";
import { Executor, LANE_DUTY } from "../../src/execute/executor.ts";
import { attemptJob } from "../../src/execute/job.ts";
import type { WorkRules } from "../../src/execute/worklist.ts";
import { LANE_ALARM_FROM_MS, LANE_ALARM_MS, LANE_SLOTS } from "../../src/limits.ts";
import type { ClaimReply, Job, Settlement } from "../../src/run-api/groups.ts";
import type { LaneApi } from "../../src/run-api/lane-api.ts";
import { RunCaller } from "../../src/run-client/caller.ts";
import type { Objects } from "../address.ts";

const LANE_RULES: WorkRules = { callsMax: LANE_SLOTS, waitingMax: LANE_SLOTS, settleAtShare: 1, mergeMs: null };

export class LaneObject extends DurableObject<Objects> implements LaneApi {
  #executor: Executor | null = null;

  /**
   * Keeps a lane in memory that works for long: its calls do so for 15 minutes each, and this is an event. An alarm of a lane
   * that has ended changes nothing.
   */
  override async alarm(): Promise<void> {
    if (this.#executor !== null) await this.ctx.storage.setAlarm(Date.now() + LANE_ALARM_MS);
  }

  start(runId: string, lane: number): void {
    if (this.#executor !== null) {
      // A lane that is about to stop claims once more.
      this.#executor.nudge();
      return;
    }
    const executor = this.#executorOf(new RunCaller(this.env, runId), lane);
    this.#executor = executor;
    const staysAwake = setTimeout(() => void this.alarm(), LANE_ALARM_FROM_MS);
    const ended = executor.run().finally(() => {
      clearTimeout(staysAwake);
      this.#executor = null;
    });
    this.ctx.waitUntil(ended);
  }

  reconcileLeases(runId: string, lane: number, epoch: number): string[] {
    const attemptIds = this.#executor?.reconcile(epoch) ?? [];
    this.start(runId, lane);
    return attemptIds;
  }

  abort(attemptIds: string[]): void {
    this.#executor?.abort(attemptIds);
  }

  #executorOf(run: RunCaller, lane: number): Executor {
    return new Executor(
      {
        claim: ({ settlements, capacity, waits }) =>
          run.callOnce<ClaimReply>((stub) => stub.settleAndClaim(lane, settlements, capacity, waits)),
        heartbeat: (attemptIds) => run.callOnce<string[]>((stub) => stub.heartbeat(attemptIds)),
        execute: (job, defaultsJson, attempt) => this.#execute(job, defaultsJson, attempt),
        now: Date.now,
        random: Math.random,
        wait: (ms) => scheduler.wait(ms),
      },
      LANE_RULES,
      LANE_DUTY,
    );
  }

  async #execute(job: Job, defaultsJson: string, attempt: Attempt): Promise<Settlement> {
    const parsed = configOf(this.env);
    if (!parsed.ok) return { attemptId: job.lease.attemptId, outcome: unsent(parsed.reason) };
    const { upstreams, waitingFetchesMax } = parsed.config;
    return attemptJob(job, defaultsJson, attempt, { upstreams, headersLimited: waitingFetchesMax <= LANE_SLOTS });
  }
}
