/** Turns the results of a provider's batch into outcomes of its calls. Each attempt begins and ends in the turn in which its result arrives. */
import type { Outcome } from "../../call.ts";
import type { Group } from "../group/group.ts";
import { LOST } from "../gates/retry.ts";
import { settle } from "./settle.ts";
import { PROVIDER_SHARD, storedLease, type AttemptInFlight, type StoredLease } from "../leases/shard.ts";
import { indexOf } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";

/**
 * What holds for the calls of a page without a result. `unsent`: the provider has not processed them, so they are free, and sent
 * live. `lost`: unknown.
 */
export type PageRest = "unsent" | "lost";

type Failure = Extract<Outcome, { kind: "failure" }>;

/** Settles a call of a page. False, with nothing changed, if it has ended or never existed: a file may list it twice. */
export function settleAtProvider(
  state: EngineState,
  group: Group,
  { page, index, outcome }: { page: number; index: number; outcome: Outcome },
  nowMs: number,
): boolean {
  const lease = group.provider?.take(page, index);
  if (lease === undefined) return false;
  const queuedMs = Math.max(0, nowMs - group.header.openedAtMs);
  state.begin({ ...lease, startedAtMs: nowMs, queuedMs }, PROVIDER_SHARD, null, nowMs);
  settle(state, lease.attemptId, outcomeIn(group, lease, outcome), nowMs);
  return true;
}

/** Settles all calls of a page that are left. */
export function endPage(state: EngineState, group: Group, page: number, rest: PageRest, nowMs: number): void {
  for (const lease of group.provider?.page(page) ?? []) {
    const index = indexOf(lease.slotId ?? 0);
    settleAtProvider(state, group, { page, index, outcome: outcomeOfRest(rest, lease) }, nowMs);
  }
}

/** A call that was cancelled, by itself or with its group, is not sent live. */
function outcomeIn(group: Group, { slotId }: AttemptInFlight, outcome: Outcome): Outcome {
  if (outcome.kind === "success" || outcome.refusesTier !== true) return outcome;
  const isCancelled = group.isCancelled(indexOf(slotId ?? 0));
  if (group.drained === null && !isCancelled) return outcome;
  const { refusesTier: _, ...rest } = outcome;
  const cancelled = { reason: "cancelled", message: "the call was cancelled in its provider's batch" } as const;
  return { ...rest, reason: group.drained?.reason ?? cancelled };
}

function outcomeOfRest(rest: PageRest, { target: { upstream } }: AttemptInFlight): Failure {
  const failure = { kind: "failure", answered: false, retryAfterMs: null, latencyMs: 0 } as const;
  return rest === "lost" ? { ...failure, class: "unknown", reason: LOST } : { ...failure, ...unsentAt(upstream) };
}

/** The outcome of a call that a provider has not processed: free, and sent live at once. */
export function unsentAt(upstream: string): Pick<Failure, "class" | "reason" | "refusesTier"> {
  const message = `${upstream} did not process this call of its batch`;
  return {
    class: "rejected",
    reason: { reason: "upstream_error", upstream, status: null, message, retryable: true },
    refusesTier: true,
  };
}

/** A page as it is stored: written once, because what has ended of it follows from the rows of its slots. */
export type StoredProviderPage = { page: number; leases: StoredLease[] };

/** The stored form of a page. Its caps are stored: a page may have to be given out again. */
export function storedPage(page: number, leases: readonly AttemptInFlight[]): StoredProviderPage {
  const stored = leases.map((lease) => {
    const { capTokens, capKind } = lease;
    const kind = capKind === "client" ? {} : { capKind };
    return { ...storedLease(lease), ...(capTokens === null ? {} : { capTokens }), ...kind };
  });
  return { page, leases: stored };
}
