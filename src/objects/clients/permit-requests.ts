/** Requests for permits, as they are sent: with the age that their calls have then, and without calls whose clients have left. */
import type { AcquireReply, AcquireRequest } from "../methods/calls.ts";
import type { LeavingSignal } from "../../call.ts";

/** A call that requests its permit. */
export type PermitRequest = {
  request: AcquireRequest;
  /** When its Worker got it, epoch ms. */
  acceptedAtMs: number;
  /** Aborts when its client has left: then it is not requested any more. */
  signal: Pick<LeavingSignal, "aborted">;
};

/** The request as it is sent now. */
export function agedRequest(
  { request, acceptedAtMs }: Pick<PermitRequest, "request" | "acceptedAtMs">,
  nowMs: number,
): AcquireRequest {
  return { ...request, ageMs: nowMs - acceptedAtMs, sentAtMs: nowMs };
}

const WITHDRAWN: AcquireReply = { ok: "wait" };

/**
 * The decisions on these calls, in their order; `wait` for one that is queued, or whose client has left.
 * @param send Requests permits. It reads the requests anew at each try: one after a restart must not queue calls again whose clients
 * have left meanwhile.
 */
export async function decisionsOn(
  calls: readonly PermitRequest[],
  now: () => number,
  send: (live: () => AcquireRequest[]) => Promise<AcquireReply[]>,
): Promise<AcquireReply[]> {
  let sent: readonly PermitRequest[] = [];
  const replies = await send(() => {
    sent = calls.filter(({ signal }) => !signal.aborted);
    const nowMs = now();
    return sent.map((call) => agedRequest(call, nowMs));
  });
  const replyTo = new Map(sent.map((call, position) => [call, replies[position]]));
  return calls.map((call) => replyTo.get(call) ?? WITHDRAWN);
}
