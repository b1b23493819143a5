/**
 * Requests for permits of one run that are made in one isolate at the same time share a call to the run object: while
 * one call is under way, the others collect, and the next takes all of them. Each of these calls belongs to one client's
 * request, and ends with it; so every request waits a bounded time for another's call, and then makes one itself, which
 * the object recognises (`acquire` is idempotent by call and attempt).
 */
import { PERMIT_GUARD_MS, PERMITS_PER_REQUEST_MAX } from "../../limits.ts";
import type { AcquireReply, AcquireRequest } from "../methods/calls.ts";
import { RenewedMap } from "../../renewed/map.ts";
import { RenewedSet } from "../../renewed/set.ts";

/** A call that requests its permit. Its age is that of the moment in which the request is sent. */
export type PermitRequest = {
  request: AcquireRequest;
  /** When its Worker got it, epoch ms. */
  acceptedAtMs: number;
  /** Aborts when its client has left: then it is not requested any more. */
  signal: AbortSignal;
};

export type PermitRequestDeps = {
  /** Epoch ms. */
  now: () => number;
  /** Calls the run object for all of these, which are read anew at each try; replies in their order. */
  send: (live: () => AcquireRequest[]) => Promise<AcquireReply[]>;
  /** Resolves when the promise has ended, with true; or with false after `ms`. It never rejects. */
  endedWithin: (promise: Promise<void>, ms: number) => Promise<boolean>;
};

type Decided = { ok: true; reply: AcquireReply } | { ok: false; error: unknown };
type Waiting = PermitRequest & { decided: Decided | null };
type Desk = { waiting: RenewedSet<Waiting>; sending: Promise<void> | null };

/** The request as it is sent now. */
export function agedRequest(
  { request, acceptedAtMs }: Pick<PermitRequest, "request" | "acceptedAtMs">,
  nowMs: number,
): AcquireRequest {
  return { ...request, ageMs: nowMs - acceptedAtMs, sentAtMs: nowMs };
}

/** The requests for permits of this isolate, by run. */
export class PermitRequests {
  readonly #desks = new RenewedMap<string, Desk>();

  /** Number of runs for which a request is under way. */
  get size(): number {
    return this.#desks.size;
  }

  /** The run's decision; `wait` if the call is queued, or its client has left. Rejects if the object is unreachable. */
  async decisionOn(runId: string, call: PermitRequest, deps: PermitRequestDeps): Promise<AcquireReply> {
    const desk = this.#deskOf(runId);
    const own: Waiting = { ...call, decided: null };
    desk.waiting.add(own);
    try {
      while (own.decided === null) {
        if (desk.sending === null) await sendAll(desk, own, deps);
        else {
          const { sending } = desk;
          const isOver = await deps.endedWithin(sending, PERMIT_GUARD_MS);
          // Its request has ended, or the object is restarting: the first caller that notices requests for all of them.
          if (!isOver && desk.sending === sending) desk.sending = null;
        }
      }
      if (own.decided.ok) return own.decided.reply;
      throw own.decided.error;
    } finally {
      desk.waiting.delete(own);
      if (desk.waiting.size === 0 && this.#desks.get(runId) === desk) this.#desks.delete(runId);
    }
  }

  #deskOf(runId: string): Desk {
    const known = this.#desks.get(runId);
    if (known !== undefined) return known;
    const desk = { waiting: new RenewedSet<Waiting>(), sending: null };
    this.#desks.set(runId, desk);
    return desk;
  }
}

const WITHDRAWN: Decided = { ok: true, reply: { ok: "wait" } };

/** Requests the permits of all that wait, `own` among them. */
async function sendAll(desk: Desk, own: Waiting, { now, send }: PermitRequestDeps): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  desk.sending = promise;
  const others = [...desk.waiting].filter((other) => other !== own && other.decided === null);
  const asked = [own, ...others.slice(0, PERMITS_PER_REQUEST_MAX - 1)];
  let sent: Waiting[] = [];
  // A retry after a restart must not queue calls anew whose clients have left meanwhile.
  const live = (): AcquireRequest[] => {
    sent = asked.filter(({ signal }) => !signal.aborted);
    const nowMs = now();
    return sent.map((call) => agedRequest(call, nowMs));
  };
  try {
    const replies = await send(live);
    replies.forEach((reply, position) => {
      const call = sent[position];
      if (call !== undefined) call.decided ??= { ok: true, reply };
    });
    for (const call of asked) call.decided ??= WITHDRAWN;
  } catch (error) {
    for (const call of asked) call.decided ??= { ok: false, error };
  } finally {
    if (desk.sending === promise) desk.sending = null;
    resolve();
  }
}
