/**
 * A lane executes a run's attempts, at most six at a time: Cloudflare lets an object wait for the headers of six fetches,
 * and queues the seventh silently. It stores nothing: if the lane dies, its leases expire in the run object, so it needs
 * no watchdog of its own. Its methods are described in src/run-api/lane-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { readCall } from "../../src/engine/call-page.ts";
import { configOf } from "../../src/env.ts";
import { attemptCall, unsent, type Attempt } from "../../src/execute/attempt.ts";
import { Executor } from "../../src/execute/executor.ts";
import { HEARTBEAT_MS, LANE_SLOTS } from "../../src/limits.ts";
import type { ClaimReply, Job, Settlement } from "../../src/run-api/groups.ts";
import type { LaneApi } from "../../src/run-api/lane-api.ts";
import { RunCaller } from "../../src/run-client/caller.ts";
import type { Objects } from "../address.ts";

export class LaneObject extends DurableObject<Objects> implements LaneApi {
  #executor: Executor | null = null;

  start(runId: string, lane: number): void {
    if (this.#executor !== null) {
      // A lane that is about to stop claims once more.
      this.#executor.nudge();
      return;
    }
    const executor = this.#executorOf(new RunCaller(this.env, runId), lane);
    this.#executor = executor;
    const heartbeats = setInterval(() => void executor.heartbeat(), HEARTBEAT_MS);
    const ended = executor.run().finally(() => {
      clearInterval(heartbeats);
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
      { callsMax: LANE_SLOTS },
    );
  }

  async #execute({ lease, callJson }: Job, defaultsJson: string, attempt: Attempt): Promise<Settlement> {
    const { attemptId } = lease;
    const parsed = configOf(this.env);
    if (!parsed.ok) return { attemptId, outcome: unsent(parsed.reason) };
    const { upstreams, waitingFetchesMax } = parsed.config;
    const headersLimited = waitingFetchesMax <= LANE_SLOTS;
    const outcome = await attemptCall(attempt, readCall(callJson, defaultsJson), { upstreams, headersLimited });
    return { attemptId, outcome };
  }
}
