/** Messages about a group between its run and the object that feeds the provider's batches. */
import type { Lease, Outcome } from "../../call.ts";
import type { PageRest } from "../../run/steps/provider-settle.ts";

/** A call of a batch, as an executor gets it. */
export type ProviderJob = { lease: Lease; callJson: string };

/** `isStopped`: the group goes on no more, so its batches are to be cancelled. Times in epoch ms. */
export type ProviderGroup = { isStopped: boolean; liveAtMs: number; deadlineAtMs: number; pollMs: number };

/** The calls of a page that have not ended; `later`: some wait; `none`: none will come. `defaultsJson`: see ClaimReply. */
export type ProviderClaim = ProviderGroup &
  ({ kind: "page"; jobs: ProviderJob[]; defaultsJson: string } | { kind: "later" | "none" });

/** An answer of a batch; `index`: of its slot. */
export type ProviderAnswer = { index: number; outcome: Outcome };

/**
 * Answers of a page, and what holds for its other calls if no more will come; null = more come. `releases`: calls that are in no
 * page yet are sent live, because their batches would fare no better.
 */
export type ProviderSettlement = { page: number; answers: ProviderAnswer[]; rest: PageRest | null; releases?: true };

/** The methods of the object that feeds the batches of one group. */
export interface ProviderBatchApi extends Rpc.DurableObjectBranded {
  /** Slots of the group wait for a batch, or (`stops`) its batches are to be cancelled. Returns at once; safe to repeat. */
  notify(group: { runId: string; seq: number; stops: boolean }): void;
}
