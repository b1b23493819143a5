/**
 * A shard of the run's ledger: one executor's attempts in flight with their reservations, and the totals of those that
 * ended. One row each, so that a lane's settle and claim cost one row together, and what the run has spent and reserved
 * is the sum of its shards. Lanes have the shard of their number; single calls share shards from DIRECT_SHARD_FIRST on.
 */
import type { TokenBounds } from "../budget/estimate.ts";
import type { Amounts } from "../budget/ledger.ts";
import type { TokenPrice } from "../budget/money.ts";
import { zeroTotals, type Totals } from "./totals.ts";

/** Shards of single calls start here; lanes are numbered below it. */
export const DIRECT_SHARD_FIRST = 1_000;
/** Leases in one shard of single calls: rewriting a row of sixteen is cheap, and one busy run has few such rows. */
export const DIRECT_SHARD_LEASES_MAX = 16;

/** What a model resolves to: where a slot is sent, at what price and under which limits. */
export type Target = {
  upstream: string;
  model: string;
  /** null = unpriced and allowed to be free. */
  price: TokenPrice | null;
  bounds: TokenBounds;
  maxInFlight: number;
  timeoutMs: number;
  attemptsMax: number;
};

/** An attempt in flight: the lease of an executor on a slot, and the reservation behind it. */
export type AttemptInFlight = {
  attemptId: string;
  /** null for a single call: its slot is the client's own request. */
  slotId: number | null;
  attempt: number;
  target: Target;
  amounts: Amounts;
  startedAtMs: number;
  queuedMs: number;
  /** Completion cap to send upstream, in tokens; null = none. */
  capTokens: number | null;
  /** Whether its call is tried again when nobody knows what became of it. */
  onLost: "retry" | "fail";
  /** Ends without a heartbeat; memory only, a restart grants a fresh term. */
  expiresAtMs: number;
  /** Number of the event that tells of its start. */
  startSeq: number;
  /** The key it leads its equals under, if it may be shared. */
  dedupeKey: string | null;
};

export type Shard = { id: number; totals: Totals; leases: Map<string, AttemptInFlight> };

export function newShard(id: number): Shard {
  return { id, totals: zeroTotals(), leases: new Map() };
}

/** A lease as its shard's row holds it; the target is resolved again from the configuration on start. */
export type StoredLease = {
  id: string;
  slot: number | null;
  attempt: number;
  upstream: string;
  model: string;
  amounts: Amounts;
  startedAtMs: number;
  queuedMs: number;
  /** Number of the event that tells of its start, which may not have been written when this was. */
  startSeq: number;
  /** Only of a single call with a cap: whoever asks again for its permit gets the same. A lane is never asked twice. */
  capTokens?: number;
  /** Only of a single call that is not tried again when nobody knows what became of it: a slot's rule is its group's. */
  onLost?: "fail";
};

/** A shard's row. */
export type StoredShard = { totals: Totals; leases: StoredLease[] };

export function storedShard(shard: Shard): StoredShard {
  const leases: StoredLease[] = [];
  for (const lease of shard.leases.values()) {
    leases.push({
      id: lease.attemptId,
      slot: lease.slotId,
      attempt: lease.attempt,
      upstream: lease.target.upstream,
      model: lease.target.model,
      amounts: lease.amounts,
      startedAtMs: lease.startedAtMs,
      queuedMs: lease.queuedMs,
      startSeq: lease.startSeq,
      ...(lease.slotId === null ? ownRules(lease) : {}),
    });
  }
  return { totals: shard.totals, leases };
}

/** What only a single call's own lease remembers of it. */
function ownRules({ capTokens, onLost }: AttemptInFlight): Pick<StoredLease, "capTokens" | "onLost"> {
  return { ...(capTokens === null ? {} : { capTokens }), ...(onLost === "fail" ? { onLost } : {}) };
}
