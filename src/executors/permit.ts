/** The permit of a call that its client's Worker executes: waiting for it, keeping its lease, giving it up. */
import type { AcquireReply, AcquireRequest } from "../objects/methods/calls.ts";
import { callIdOf } from "../run/log.ts";
import { Refusal } from "../errors.ts";
import { CALL_SOCKET_AFTER_MS } from "../limits.ts";
import type { SocketOwner, SocketSignal } from "../objects/methods/sockets.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { withSettlements } from "../objects/clients/outbox.ts";
import type { LeavingSignal } from "../call.ts";
import { agedRequest, decisionsOn, type PermitRequest } from "../objects/clients/permit-requests.ts";
import { objectFailure } from "../objects/clients/retry.ts";
import { RunSocket, WaitingSocket } from "../objects/clients/run-socket.ts";
import { SharedRequests } from "../objects/clients/shared-requests.ts";
import type { StartTimer } from "../providers/exchange.ts";

/**
 * What ends the call when its client leaves: `controller` stops the attempt, once there is one; `withdraw` takes the call out of the queue.
 * `signal` aborts when it does. `end` ends the watch: the call has ended.
 */
export type ClientWatch = {
  signal: LeavingSignal;
  controller: AbortController | null;
  withdraw: (() => void) | null;
  end: () => void;
};

/** One listener for the call's whole life: the effect of the client's leaving depends on how far the call is. */
export function watchClient(signal: LeavingSignal): ClientWatch {
  const left = (): void => {
    watch.controller?.abort();
    watch.withdraw?.();
  };
  const end = (): void => signal.removeEventListener("abort", left);
  const watch: ClientWatch = { signal, controller: null, withdraw: null, end };
  signal.addEventListener("abort", left);
  return watch;
}

const WITHDRAWN: AcquireReply = { ok: "wait" };

type Decision = Exclude<AcquireReply, { ok: "wait" }>;

/**
 * Waits for the permit; null when the client left meanwhile: then the permit, if it was granted, is given back. The request is
 * made together with those that other calls of the run make in this isolate; a call that is queued then waits by itself.
 */
export async function acquire(run: RunCaller, request: AcquireRequest, watch: ClientWatch): Promise<Decision | null> {
  const { signal } = watch;
  if (signal.aborted) return null;
  const asked = { request, acceptedAtMs: now() - (request.ageMs ?? 0) };
  let withdrawal: Promise<unknown> | null = null;
  // A grant may be on its way while the client leaves. From here on the call sends nothing, so its permit costs nothing.
  watch.withdraw = () => {
    const send = (callIds: readonly string[]): Promise<null[]> => withdrawAll(run, callIds);
    withdrawal = withdrawals.replyTo(run.runId, request.callId, { send, endedWithin, now });
  };
  try {
    const send = (calls: readonly PermitRequest[]): Promise<AcquireReply[]> =>
      decisionsOn(calls, now, (live) => acquireTogether(run, live));
    const first = await permitRequests.replyTo(run.runId, { ...asked, signal }, { send, endedWithin, now });
    const reply = first.ok === "wait" ? await queuedDecision(run, asked, signal) : first;
    // With its last promise this request ends, and what it sends.
    await withdrawal;
    return withdrawal === null ? reply : null;
  } catch (error) {
    // Its permit may have been granted in a reply that was lost. An object that is overloaded has granted none.
    if (!(error instanceof Refusal)) await run.notify((stub) => stub.withdraw(request.callId));
    throw error;
  } finally {
    watch.withdraw = null;
  }
}

const permitRequests = new SharedRequests<PermitRequest, AcquireReply>();
const withdrawals = new SharedRequests<string, null>();
const now = (): number => Date.now();

/**
 * Withdraws calls of a run in one call to its object, if that knows it: a deploy replaces objects late. Never rejects: an object that
 * cannot be reached notices by itself that the Workers of the calls are gone.
 */
async function withdrawAll(run: RunCaller, callIds: readonly string[]): Promise<null[]> {
  const each = (callId: string): Promise<void> => run.callWithRetry<void>((stub) => stub.withdraw(callId));
  const [first = "", ...others] = callIds;
  const together = (): Promise<void> =>
    others.length === 0 ? each(first) : run.callWithRetry<void>((stub) => stub.withdrawMany([...callIds]));
  await together().catch(async (error: unknown) => {
    if (objectFailure(error) === "outdated") await Promise.allSettled(callIds.map(each));
  });
  return callIds.map(() => null);
}

/** Requests permits; settlements that wait in this isolate travel along. */
function acquireTogether(run: RunCaller, live: () => AcquireRequest[]): Promise<AcquireReply[]> {
  return withSettlements<AcquireReply[]>(run, (stub, taken) => {
    const requests = live();
    return requests.length === 0 && taken.length === 0 ? Promise.resolve([]) : stub.acquireMany(requests, taken);
  });
}

/** Waits until the run object decides on a queued call: in the object for a moment, then at a socket. */
async function queuedDecision(
  run: RunCaller,
  asked: { request: AcquireRequest; acceptedAtMs: number },
  signal: LeavingSignal,
): Promise<Decision | null> {
  const owner = { kind: "call", callId: asked.request.callId, attemptId: null } as const;
  let socket: WaitingSocket | null = null;
  try {
    while (!signal.aborted) {
      // An object that restarted has forgotten the call: it must not be queued anew for a client that has left.
      const reply = await withSettlements<AcquireReply>(run, (stub, taken) =>
        signal.aborted && taken.length === 0
          ? Promise.resolve(WITHDRAWN)
          : stub.acquire(agedRequest(asked, now()), taken),
      );
      if (reply.ok !== "wait") return reply;
      // An object that has just queued the call anew does not know its socket.
      if (socket === null) socket = new WaitingSocket(owner, run, signal);
      else socket.update(owner);
      const decision = decisionIn(await socket.next());
      if (decision !== null) return decision;
    }
    return null;
  } finally {
    socket?.close();
  }
}

/** The decision that a signal brings; null = the request must be repeated. */
function decisionIn(signal: SocketSignal | null): Decision | null {
  return signal?.type === "reply" && signal.reply.ok !== "wait" ? signal.reply : null;
}

/** True once the promise has ended; false if `ms` were over before. The timer also counts as work of this request's own. */
export function endedWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const guard = setTimeout(() => resolve(false), ms);
    void promise.then(() => {
      clearTimeout(guard);
      resolve(true);
    });
  });
}

/** The timer of a single call's attempt, which also keeps its lease. */
export function attemptTimer(
  run: RunCaller,
  attemptId: string,
  { controller, known }: { controller: AbortController; known: () => Promise<void> },
): StartTimer {
  const callId = callIdOf(attemptId);
  const renewed = async (): Promise<boolean> => {
    const lost = await run.callOnce<string[]>((stub) => stub.heartbeat([attemptId]));
    return lost.length === 0;
  };
  return timerWithSocket({ run, owner: { kind: "call", callId, attemptId }, renewed, controller, known });
}

export type HeldWork = {
  run: RunCaller;
  owner: SocketOwner;
  /** Extends what the work needs for a while, where the object gives no socket. Resolves with false if it is gone. */
  renewed: () => Promise<boolean>;
  /** Aborted when the run was cancelled or gave the work up. */
  controller: AbortController;
  /** Resolves once the run object knows of the work: it would give up what it does not know. Absent = it does. */
  known?: () => Promise<void>;
};

/**
 * One timer for both: it goes off when the work has lasted for a while, to open its socket, and when its time is over. The
 * run object notices by the socket that the Worker is lost, and sends what ends the work.
 */
export function timerWithSocket({ run, owner, renewed, controller, known }: HeldWork): StartTimer {
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
    let isStopped = false;
    const openSocket = (): void => {
      if (!isStopped) socket = new RunSocket(owner, { run, signalled, refused, renewMs: null });
    };
    const open = (): void => {
      if (known === undefined) openSocket();
      // While the run object cannot be reached, no socket could be opened either.
      else void known().then(openSocket, openSocket);
      handle = setTimeout(elapsed, ms - CALL_SOCKET_AFTER_MS);
    };
    handle = ms > CALL_SOCKET_AFTER_MS ? setTimeout(open, CALL_SOCKET_AFTER_MS) : setTimeout(elapsed, ms);
    return () => {
      isStopped = true;
      clearTimeout(handle);
      socket?.close();
    };
  };
}
