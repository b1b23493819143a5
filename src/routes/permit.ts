/** How the Worker of a single call gets its permit, keeps its lease, and hears of its client's leaving. */
import type { RunCaller } from "../../durable-objects/again.ts";
import type { AcquireReply, AcquireRequest, SingleSettlement } from "../../durable-objects/run/rpc.ts";
import { CALL_BEAT_MS } from "../limits.ts";
import type { StartTimer } from "../upstream/attempt.ts";

/**
 * What ends the call when its client leaves: `controller` stops the attempt, `leave` gives up the place in the queue.
 * `signal` aborts when it does.
 */
export type Watch = { signal: AbortSignal; controller: AbortController; leave: (() => void) | null };

/** One listener for the call's whole life: what the client's leaving means depends on where the call stands. */
export function watchClient(signal: AbortSignal): Watch {
  const watch: Watch = { signal, controller: new AbortController(), leave: null };
  signal.addEventListener("abort", () => {
    watch.controller.abort();
    watch.leave?.();
  });
  return watch;
}

/** Settlements of other calls that travel with this one. */
export type Settlements = { take: () => SingleSettlement[]; putBack: (settlements: SingleSettlement[]) => void };

const NONE: Settlements = { take: () => [], putBack: () => undefined };

/** Waits for the permit; null when the client left meanwhile. */
export async function acquire(
  run: RunCaller,
  request: AcquireRequest,
  watch: Watch,
  settlements: Settlements = NONE,
): Promise<Exclude<AcquireReply, { ok: "wait" }> | null> {
  watch.leave = () => run.tell((stub) => stub.withdraw(request.callId));
  while (!watch.signal.aborted) {
    const taken = settlements.take();
    let reply: AcquireReply;
    try {
      reply = await run.untilAnswered<AcquireReply>((stub) => stub.acquire(request, taken));
    } catch (error) {
      settlements.putBack(taken);
      throw error;
    }
    if (reply.ok === "wait") continue;
    watch.leave = null;
    return reply;
  }
  return null;
}

/** The timer of an attempt, which also keeps its lease alive. */
export function beatingTimer(run: RunCaller, attemptId: string, controller: AbortController): StartTimer {
  const isHeld = async (): Promise<boolean> => {
    const lost = await run.once<string[]>((stub) => stub.heartbeat([attemptId]));
    return lost.length === 0;
  };
  return timerWithBeats(isHeld, controller);
}

/**
 * One timer for all: it goes off at every beat until the time is over. A beat that finds what it keeps alive gone aborts
 * the work: its run was cancelled, or gave it up.
 */
export function timerWithBeats(isHeld: () => Promise<boolean>, controller: AbortController): StartTimer {
  const beat = async (): Promise<void> => {
    try {
      if (!(await isHeld())) controller.abort();
    } catch {
      // A missed beat is harmless: a lease outlives many.
    }
  };
  return (ms, elapsed) => {
    let leftMs = ms;
    let handle: ReturnType<typeof setTimeout>;
    const next = (): void => {
      const stepMs = Math.min(leftMs, CALL_BEAT_MS);
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
