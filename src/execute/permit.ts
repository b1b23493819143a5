/** The permit of a call that its client's Worker executes: waiting for it, keeping its lease, giving it up. */
import type { AcquireReply, AcquireRequest } from "../run-api/calls.ts";
import { callIdOf } from "../engine/log.ts";
import { CALL_SOCKET_AFTER_MS } from "../limits.ts";
import type { SocketOwner, SocketSignal } from "../run-api/sockets.ts";
import type { RunCaller } from "../run-client/caller.ts";
import { RunSocket } from "../run-client/run-socket.ts";
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

/** The timer of a single call's attempt, which also keeps its lease. */
export function attemptTimer(run: RunCaller, attemptId: string, controller: AbortController): StartTimer {
  const callId = callIdOf(attemptId);
  const renewed = async (): Promise<boolean> => {
    const lost = await run.callOnce<string[]>((stub) => stub.heartbeat([attemptId]));
    return lost.length === 0;
  };
  return timerWithSocket({ run, owner: { kind: "call", callId, attemptId }, renewed, controller });
}

export type HeldWork = {
  run: RunCaller;
  owner: SocketOwner;
  /** Extends what the work needs for a while, where the object gives no socket. Resolves with false if it is gone. */
  renewed: () => Promise<boolean>;
  /** Aborted when the run was cancelled or gave the work up. */
  controller: AbortController;
};

/**
 * One timer for both: it goes off when the work has lasted for a while, to open its socket, and when its time is over. The
 * run object notices by the socket that the Worker is lost, and sends what ends the work.
 */
export function timerWithSocket({ run, owner, renewed, controller }: HeldWork): StartTimer {
  return (ms, elapsed) => {
    let socket: RunSocket | null = null;
    let handle: ReturnType<typeof setTimeout>;
    const refused = async (): Promise<void> => {
      if (!(await renewed())) controller.abort();
    };
    const signalled = ({ type }: SocketSignal): void => {
      if (type === "abort") return controller.abort();
      // A stream that is settled may still have its last bytes to deliver; one that never closes is not waited for.
      clearTimeout(handle);
      handle = setTimeout(() => controller.abort(), CALL_SOCKET_AFTER_MS);
    };
    const open = (): void => {
      socket = new RunSocket(owner, { run, signalled, refused });
      handle = setTimeout(elapsed, ms - CALL_SOCKET_AFTER_MS);
    };
    handle = ms > CALL_SOCKET_AFTER_MS ? setTimeout(open, CALL_SOCKET_AFTER_MS) : setTimeout(elapsed, ms);
    return () => {
      clearTimeout(handle);
      socket?.close();
    };
  };
}
