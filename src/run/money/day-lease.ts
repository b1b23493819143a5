/**
 * The root budget of a day, divided among the parts of the list of runs. Each part has a lease: it opens runs inside it without asking
 * anybody, so that as many can be opened per second as all parts take together. One object, the whole, knows what is leased, and leases
 * no more than the budget. The two sides agree on a lease by absolute figures under a number:
 *
 *   - the whole stores a rise before the part does, and the part a fall before the whole: a lease is never higher in its part;
 *   - a request that is repeated or comes late has a number that the whole has answered already, and changes nothing;
 *   - what a part gives back counts only if no request of it was answered since.
 *
 * So the sum of what the parts' runs reserve and spend stays within the budget, whichever message or object is lost.
 */
import { DAY_LEASE_SHARES } from "../../limits.ts";

/** A part's lease as one side knows it. `no`: the last request of the part that this side has applied; 0 = none. */
export type Lease = { no: number; nanoUsd: number };

/** What a part asks for. */
export type LeaseRequest = {
  /** One above the number of the part's lease. A request that is repeated has it again. */
  no: number;
  /** The part's lease when it asks. */
  leasedNanoUsd: number;
  /** What its runs have reserved and spent; more than its lease only if upstreams have billed above reservations. */
  committedNanoUsd: number;
  /** What runs that wait are to reserve beyond that, in their order. */
  wantedNanoUsd: readonly number[];
  /** The day's budget, as the configuration has it. */
  limitNanoUsd: number;
};

/** The part's lease from now on. */
export type LeaseReply = Lease & {
  /** Of each that was wanted, whether the lease covers it; null = an earlier request had this number: ask with the next one. */
  covers: readonly boolean[] | null;
  /** Whether all of the lease is inside the request's limit; else nothing but what is covered may be reserved under that limit. */
  isWithinLimit: boolean;
  /** What all parts together have leased of the day's budget. */
  committedNanoUsd: number;
};

export type LeaseVerdict = Pick<LeaseReply, "isWithinLimit"> & {
  lease: Lease;
  covers: readonly boolean[];
  /** The budget does not cover all that is wanted, or does not cover what is leased: others may have something to give back. */
  isShort: boolean;
};

/**
 * What a part may have of a day's budget.
 * @param known The part's lease as the whole knows it.
 * @param committedNanoUsd What all parts have leased, this one included.
 */
export function judgeLease(known: Lease, committedNanoUsd: number, request: LeaseRequest): LeaseVerdict {
  const { limitNanoUsd, wantedNanoUsd } = request;
  const others = committedNanoUsd - known.nanoUsd;
  // What its runs have spent is spent, whatever the limit is.
  let needed = request.committedNanoUsd;
  const covers = wantedNanoUsd.map((wanted) => {
    const isCovered = others + needed + wanted <= limitNanoUsd;
    if (isCovered) needed += wanted;
    return isCovered;
  });
  // Not what the part believed when it asked: it may have given some back since.
  const kept = Math.min(known.nanoUsd, request.leasedNanoUsd);
  const isShort = covers.includes(false) || others + Math.max(kept, needed) > limitNanoUsd;
  const ahead = isShort ? 0 : Math.floor((limitNanoUsd - others - needed) / DAY_LEASE_SHARES);
  const nanoUsd = Math.max(kept, needed + ahead);
  return { lease: { no: request.no, nanoUsd }, covers, isShort, isWithinLimit: others + nanoUsd <= limitNanoUsd };
}

/** The lease of a part that has given back what its runs do not use, as the whole knows it. Never a rise. */
export function afterRelease(known: Lease, released: Lease): Lease {
  if (released.no !== known.no) return known;
  return { no: known.no, nanoUsd: Math.min(known.nanoUsd, released.nanoUsd) };
}
