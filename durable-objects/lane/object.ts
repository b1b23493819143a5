/**
 * A lane executes a run's attempts, of which at most six wait for headers: Cloudflare lets no more fetches of an object wait,
 * and queues the seventh silently. It stores nothing: if the lane dies, its leases expire in the run object, so it needs
 * no watchdog of its own. Its methods are described in src/objects/methods/lane-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { unsent, type Attempt } from "../../src/executors/attempt.ts";
import { openExecutorSocket } from "../../src/executors/executor-socket.ts";
import { Executor } from "../../src/executors/executor.ts";
import { attemptJob } from "../../src/executors/job.ts";
import { toolAttempts } from "../../src/executors/tool-task.ts";
import { LaneDuty } from "./duty.ts";
import { isolatePaces } from "../../src/executors/paces.ts";
import { areHeadersLimited, type WorkRules } from "../../src/executors/rules.ts";
import { EXECUTOR_CALLS_MAX, LANE_ALARM_FROM_MS, LANE_ALARM_MS, WAITING_FETCHES_DEFAULT } from "../../src/limits.ts";
import type { ClaimReply, Job, Settlement } from "../../src/objects/methods/groups.ts";
import type { LaneApi } from "../../src/objects/methods/lane-api.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import type { Objects } from "../../src/objects/address.ts";
import { alarmMs } from "../alarm-time.ts";

/** A lane takes no more where nothing limits headers: other lanes share the work, and the loss of one. */
function laneRules(waitingFetchesMax: number): WorkRules {
  const waitingMax = Math.min(waitingFetchesMax, EXECUTOR_CALLS_MAX);
  return { callsMax: EXECUTOR_CALLS_MAX, waitingMax, settleAtShare: 1, mergeMs: 0, shortMergeMs: 0 };
}

export class LaneObject extends DurableObject<Objects> implements LaneApi {
  #executor: Executor | null = null;

  /**
   * Keeps a lane in memory that works for long: its calls do so for 15 minutes each, and this is an event. An alarm of a lane
   * that has ended changes nothing.
   */
  override async alarm(): Promise<void> {
    const nowMs = Date.now();
    if (this.#executor !== null) await this.ctx.storage.setAlarm(alarmMs(nowMs + LANE_ALARM_MS, nowMs));
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
    const parsed = configOf(this.env);
    const duty = new LaneDuty({
      now: Date.now,
      nudge: () => this.#executor?.nudge(),
      after: (ms, callback) => {
        const handle = setTimeout(callback, ms);
        return () => clearTimeout(handle);
      },
    });
    return new Executor(
      {
        claim: ({ settlements, capacity, waits, reach }) =>
          run.callOnce<ClaimReply>((stub) => stub.settleAndClaim(lane, settlements, capacity, waits, null, reach)),
        openSocket: (listener) => openExecutorSocket(run, lane, listener),
        heartbeat: (attemptIds) => run.callOnce<string[]>((stub) => stub.heartbeat(attemptIds)),
        execute: (job, defaultsJson, attempt) => this.#execute(run, job, defaultsJson, attempt),
        paces: isolatePaces,
        now: Date.now,
        random: Math.random,
        wait: (ms) => scheduler.wait(ms),
      },
      laneRules(parsed.ok ? parsed.config.waitingFetchesMax : WAITING_FETCHES_DEFAULT),
      duty,
    );
  }

  async #execute(run: RunCaller, job: Job, defaultsJson: string, attempt: Attempt): Promise<Settlement> {
    const parsed = configOf(this.env);
    if (!parsed.ok) return { attemptId: job.lease.attemptId, outcome: unsent(parsed.reason) };
    const { upstreams, waitingFetchesMax, toolHosts } = parsed.config;
    return attemptJob(job, defaultsJson, attempt, {
      upstreams,
      headersLimited: areHeadersLimited(waitingFetchesMax),
      run,
      callTools: toolAttempts(run, toolHosts),
    });
  }
}
