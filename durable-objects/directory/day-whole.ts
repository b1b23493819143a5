/**
 * The object that divides the budget of a day among the parts of the list of runs: see src/run/money/day-lease.ts. It is asked when a
 * lease is used up, not for each run. Where the budget does not cover what a part wants, all parts give back first what they do not use.
 */
import {
  afterRelease,
  judgeLease,
  type Lease,
  type LeaseReply,
  type LeaseRequest,
} from "../../src/run/money/day-lease.ts";
import { DAY_RECALL_MS_MAX } from "../../src/limits.ts";

/** What the whole stores. */
export type WholeRows = {
  /** The lease of a part; of none, number and amount 0. */
  leaseOf: (day: string, part: string) => Lease;
  /** Stores the lease, and with it what all parts have leased. */
  putLeaseOf: (day: string, part: string, lease: Lease) => void;
  /** The parts that have leased something. */
  lessees: (day: string) => string[];
  /** What all parts have leased, and what runs outside of them have reserved and spent. */
  committed: (day: string) => number;
};

export type DayWholeDeps = {
  rows: WholeRows;
  /** Has a part give back what its runs do not use. `no`: the last of its requests that was applied here. */
  release: (part: string, day: string, no: number) => Promise<Lease>;
  /** Calls `elapsed` after `ms`, unless what it returns is called first: a timer that nobody needs would keep the object awake. */
  timer: (ms: number, elapsed: () => void) => () => void;
};

export class DayWhole {
  readonly #deps: DayWholeDeps;
  /** By day: the recall that runs last, and one that has not begun. */
  readonly #last = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  constructor(deps: DayWholeDeps) {
    this.#deps = deps;
  }

  async lease(day: string, part: string, request: LeaseRequest): Promise<LeaseReply> {
    const reply = this.#judge(day, part, request, false);
    if (reply !== null) return reply;
    await this.#recall(day);
    return this.#judge(day, part, request, true);
  }

  #judge(day: string, part: string, request: LeaseRequest, isLast: true): LeaseReply;
  #judge(day: string, part: string, request: LeaseRequest, isLast: boolean): LeaseReply | null;
  /** The reply to a request; null = others must give back first, which `isLast` says that they have. */
  #judge(day: string, part: string, request: LeaseRequest, isLast: boolean): LeaseReply | null {
    const { rows } = this.#deps;
    const known = rows.leaseOf(day, part);
    const committed = rows.committed(day);
    if (request.no <= known.no) return { ...known, covers: null, isWithinLimit: false, committedNanoUsd: committed };
    const { lease, covers, isShort, isWithinLimit } = judgeLease(known, committed, request);
    if (isShort && !isLast) return null;
    rows.putLeaseOf(day, part, lease);
    return { ...lease, covers, isWithinLimit, committedNanoUsd: rows.committed(day) };
  }

  /** Resolves when a recall has ended that began after this call: what a run gave back before counts. Never rejects. */
  #recall(day: string): Promise<void> {
    const known = this.#next.get(day);
    if (known !== undefined) return known;
    const next = (this.#last.get(day) ?? Promise.resolve()).then(() => {
      this.#next.delete(day);
      return this.#recallNow(day);
    });
    this.#next.set(day, next);
    this.#last.set(day, next);
    return next;
  }

  /** A part that does not answer keeps its lease; what it gives back later counts then. */
  async #recallNow(day: string): Promise<void> {
    const { rows, release, timer } = this.#deps;
    const recalls = rows.lessees(day).map(async (part) => {
      const released = await release(part, day, rows.leaseOf(day, part).no);
      const known = rows.leaseOf(day, part);
      const now = afterRelease(known, released);
      if (now.nanoUsd < known.nanoUsd) rows.putLeaseOf(day, part, now);
    });
    const late = Promise.withResolvers<void>();
    const stop = timer(DAY_RECALL_MS_MAX, late.resolve);
    await Promise.race([Promise.allSettled(recalls), late.promise]);
    stop();
  }
}
