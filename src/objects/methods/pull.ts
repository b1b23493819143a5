/** Pull workers and the executors whose attempts they serve, at a run object. */
import type { ClaimedUsage } from "../../run/pull/claimed-cost.ts";
import type { LeaseEnd, PullAnswer, PullItem, PullOffer } from "../../run/pull/board.ts";

/** An executor's item; `requestJson` null = the board has it, unless the object has restarted. */
export type PullOfferCall = Omit<PullOffer, "requestJson"> & { requestJson: string | null };

/** `unknown`: the board does not have the item, and needs its request. */
export type PullReply = { state: "answered"; answer: PullAnswer } | { state: "waiting" } | { state: "unknown" };

/**
 * What a worker requests: items, more time for its leases, or that an answer is taken. `waitMs` is at most 20 s. `usage`: what the
 * worker says that the item cost; absent = it says nothing.
 */
export type PullRequest =
  | { kind: "claim"; models: string[] | null; max: number; leaseMs: number; waitMs: number }
  | { kind: "renew"; leaseIds: string[]; leaseMs: number }
  | { kind: "complete"; leaseId: string; answer: PullAnswer; usage?: ClaimedUsage };

/** By lease: when it expires, epoch ms, or how it has ended. */
export type PullRenewed = { leaseId: string; state: number | LeaseEnd | "unknown" };

/** `repeated`: this lease has delivered the same answer before. */
export type PullDone =
  | { ok: true; kind: "claim"; items: PullItem[] }
  | { ok: true; kind: "renew"; leases: PullRenewed[] }
  | { ok: true; kind: "complete"; repeated: boolean };
