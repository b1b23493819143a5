/** The permit of a call that its client's Worker executes: waiting for it, keeping its lease, giving it up. */
import type { AcquireReply, AcquireRequest } from "../run-api/calls.ts";
import { CALL_HEARTBEAT_MS } from "../limits.ts";
import type { RunCaller } from "../run-client/caller.ts";
import { returnSettlements, settlementsArrived, takeSettlements } from "../run-client/settlements.ts";
import type { StartTimer } from "../upstream/exchange.ts";

/**
 * What ends the call when its client leaves: `controller` stops the attempt, `withdraw` takes the call out of the queue.
 * `signal` aborts when it does.
 */
export type ClientWatch = { signal: AbortSignal; controller: AbortController; withdraw: (() => void) | null };

/** One listener for the call's whole life: the effect of the client's leaving depends on how far the call is. */
export function watchClient(signal: AbortSignal): ClientWatch {
  const watch: ClientWatch = { signal, controller: new AbortController(), withdraw: null };
  signal.addEventListener("abort", () => {
    watch.controller.abort();
    watch.withdraw?.();
  });
  return watch;
}

const WITHDRAWN: AcquireReply = { ok: "wait" };

/** Waits for the permit; null when the client left meanwhile. Settlements that wait in this isolate travel along. */
export async function acquire(
  run: RunCaller,
  request: AcquireRequest,
  watch: ClientWatch,
): Promise<Exclude<AcquireReply, { ok: "wait" }> | null> {
  const { runId } = run;
  watch.withdraw = () => run.notify((stub) => stub.withdraw(request.callId));
  while (!watch.signal.aborted) {
    const taken = takeSettlements(runId);
    let reply: AcquireReply;
    try {
      // An object that restarted has forgotten the call: it must not be queued anew for a client that has left.
      reply = await run.callWithRetry<AcquireReply>((stub) =>
        watch.signal.aborted && taken.length === 0 ? Promise.resolve(WITHDRAWN) : stub.acquire(request, taken),
      );
    } catch (error) {
      returnSettlements(runId, taken);
      throw error;
    }
    settlementsArrived(runId, taken);
    if (reply.ok === "wait") continue;
    watch.withdraw = null;
    return reply;
  }
  return null;
}

/** The timer of an attempt, which also keeps its lease alive. */
export function heartbeatTimer(run: RunCaller, attemptId: string, controller: AbortController): StartTimer {
  const renewed = async (): Promise<boolean> => {
    const lost = await run.callOnce<string[]>((stub) => stub.heartbeat([attemptId]));
    return lost.length === 0;
  };
  return timerWithHeartbeats(renewed, controller);
}

/**
 * One timer for both: it goes off at every heartbeat until the time is over. `heartbeat` renews what the work needs, and
 * resolves with false if that is gone, because the run was cancelled or gave the work up: then the work is aborted.
 */
export function timerWithHeartbeats(heartbeat: () => Promise<boolean>, controller: AbortController): StartTimer {
  const beat = async (): Promise<void> => {
    try {
      if (!(await heartbeat())) controller.abort();
    } catch {
      // A missed heartbeat is harmless: a lease outlives many.
    }
  };
  return (ms, elapsed) => {
    let leftMs = ms;
    let handle: ReturnType<typeof setTimeout>;
    const next = (): void => {
      const stepMs = Math.min(leftMs, CALL_HEARTBEAT_MS);
      leftMs -= stepMs;
      handle = setTimeout(() => {
        if (leftMs <= 0) return elapsed();
        void beat();
        next();
      }, stepMs);
    };
    next();
    return () => clearTimeout(handle);
  };
}
