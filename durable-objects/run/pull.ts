/** The board of pull workers in the run object: executors wait there with their attempts, workers take, renew and complete. */
import { reservedFor } from "../../src/run/steps/settle.ts";
import { attemptIdOf, leaseIdFor } from "../../src/run/pull/board.ts";
import { refusedClaim } from "../../src/run/pull/claimed-cost.ts";
import type { Reason } from "../../src/errors.ts";
import { LONG_POLL_MS, RUN_FULL_RETRY_AFTER_MS } from "../../src/limits.ts";
import type { PullDone, PullOfferCall, PullReply, PullRequest } from "../../src/objects/methods/pull.ts";
import type { Refused } from "../../src/objects/methods/types.ts";
import type { RunState } from "./state.ts";
import { hasEnded } from "./status.ts";

/** Resolves when `ready`, or when `waitMs` are over. */
type Until = (ready: () => boolean, waitMs: number) => Promise<void>;

/** An executor waits for the answer to its item. */
export async function offerItem(run: RunState, offer: PullOfferCall, waitMs: number, until: Until): Promise<PullReply> {
  const { pullBoard: board } = run;
  const { attemptId } = offer;
  board.offer(offer);
  await until(() => !board.has(attemptId) || board.answerOf(attemptId) !== null, waitMs);
  const answer = board.offerEnded(attemptId, Date.now());
  if (answer !== null) return { state: "answered", answer };
  return { state: board.has(attemptId) ? "waiting" : "unknown" };
}

export async function serveWorker(run: RunState, request: PullRequest, until: Until): Promise<PullDone | Refused> {
  const { pullBoard: board } = run;
  board.prune(Date.now());
  switch (request.kind) {
    case "claim": {
      const status = run.statusAt(Date.now());
      if (hasEnded(status))
        return { ok: false, reason: { reason: "invalid_api_key", message: `the run is ${status}` } };
      await until(() => board.hasFor(request, Date.now()), request.waitMs);
      board.prune(Date.now());
      const leaseIdOf = (attemptId: string): string => leaseIdFor(attemptId, crypto.randomUUID());
      return { ok: true, kind: "claim", items: board.claim(request, leaseIdOf, Date.now()) };
    }
    case "renew": {
      const { leaseIds, leaseMs } = request;
      const leases = leaseIds.map((leaseId) => ({ leaseId, state: board.renew(leaseId, leaseMs, Date.now()) }));
      return { ok: true, kind: "renew", leases };
    }
    case "complete":
      return completeItem(run, request, until);
  }
}

/**
 * Takes a worker's answer, and replies once the attempt is settled with it, which is durable. A lease of an instance that has
 * restarted is recognised once its executor is back. A report above the item's reservation is refused, and the item stays leased.
 */
async function completeItem(
  { pullBoard: board, engine }: RunState,
  { leaseId, answer, usage }: Extract<PullRequest, { kind: "complete" }>,
  until: Until,
): Promise<PullDone | Refused> {
  const attemptId = attemptIdOf(leaseId);
  const isInFlight = (): boolean => engine.attempts.has(attemptId);
  if (isInFlight() && !board.has(attemptId)) await until(() => board.has(attemptId) || !isInFlight(), LONG_POLL_MS);
  const reserved = engine.attempts.get(attemptId)?.lease;
  if (usage !== undefined && reserved !== undefined) {
    const reason = refusedClaim(usage, reservedFor(reserved, engine.ledger.limits));
    if (reason !== null) return { ok: false, reason };
  }
  const delivered = board.deliver(leaseId, answer, Date.now());
  if (delivered === "repeated") return { ok: true, kind: "complete", repeated: true };
  if (delivered !== "held") return { ok: false, reason: { reason: "lease_lost", leaseEnd: delivered } };
  const isSettled = (): boolean => !isInFlight() && (board.isTaken(attemptId) || !board.has(attemptId));
  await until(isSettled, LONG_POLL_MS);
  if (!isSettled()) return { ok: false, reason: UNSETTLED };
  // Its executor may have been stopped before it got the answer.
  if (!board.isTaken(attemptId)) return { ok: false, reason: { reason: "lease_lost", leaseEnd: "cancelled" } };
  board.withdraw(attemptId);
  return { ok: true, kind: "complete", repeated: false };
}

const UNSETTLED: Reason = {
  reason: "overloaded",
  message: "the answer has arrived, but is not settled yet; send it again",
  retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
};
