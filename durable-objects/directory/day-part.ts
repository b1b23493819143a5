/**
 * A part of the list of runs, with its leases of the budgets of days: see src/run/money/day-lease.ts. What its lease covers it reserves
 * at once. What it does not waits for one request to the whole, which asks for all that wait; nothing overtakes them.
 */
import { DAY_LEASE_WANTED_MAX } from "../../src/limits.ts";
import type { DayReply } from "../../src/objects/methods/directory-api.ts";
import type { Lease, LeaseReply, LeaseRequest } from "../../src/run/money/day-lease.ts";

/** A part's own lease. `limitNanoUsd`: the budget inside which all of it is; null = it may be above the present one. */
export type OwnLease = Lease & { limitNanoUsd: number | null };

/** What a part stores. */
export type PartRows = {
  own: (day: string) => OwnLease | null;
  putOwn: (day: string, lease: OwnLease) => void;
  /** What the part's runs of a day have reserved and spent. */
  committed: (day: string) => number;
  /** Stores all that `write` writes, or nothing. */
  transaction: (write: () => void) => void;
};

const NO_LEASE: OwnLease = { no: 0, nanoUsd: 0, limitNanoUsd: null };

export type DayPartDeps = {
  rows: PartRows;
  /** Asks the whole. Safe to repeat. */
  ask: (day: string, request: LeaseRequest) => Promise<LeaseReply>;
};

/** An amount of a day's budget, and how large that is. */
export type Wanted = { nanoUsd: number; limitNanoUsd: number };

type Waiting = Wanted & {
  reserve: () => void;
  resolve: (reply: DayReply) => void;
  reject: (error: unknown) => void;
};

export class DayPart {
  readonly #deps: DayPartDeps;
  /** What waits for the whole's reply, by day. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(deps: DayPartDeps) {
    this.#deps = deps;
  }

  /** Calls `reserve`, which stores what it reserves, once the lease covers it; or says that the day's budget does not. */
  cover(day: string, wanted: Wanted, reserve: () => void): DayReply | Promise<DayReply> {
    const known = this.#waiting.get(day);
    if (known === undefined && this.#covers(day, wanted)) {
      this.#deps.rows.transaction(reserve);
      return { ok: true };
    }
    return new Promise((resolve, reject) => {
      const waiting = known ?? [];
      waiting.push({ ...wanted, reserve, resolve, reject });
      if (known !== undefined) return;
      this.#waiting.set(day, waiting);
      void this.#serve(day, waiting);
    });
  }

  /** Has the whole count what upstreams have billed above reservations, if that is more than the lease. */
  async coverOverrun(day: string): Promise<void> {
    const own = this.#deps.rows.own(day);
    if (own === null || this.#deps.rows.committed(day) <= own.nanoUsd) return;
    await this.cover(day, { nanoUsd: 0, limitNanoUsd: own.limitNanoUsd ?? 0 }, () => undefined);
  }

  /**
   * Gives back what runs do not use.
   * @param knownNo The last request that the whole has applied. If its reply was lost, and nobody waits for it, what it granted goes
   *   back, too.
   */
  release(day: string, knownNo: number): Lease {
    const { rows } = this.#deps;
    const own = rows.own(day) ?? NO_LEASE;
    const no = this.#waiting.has(day) ? own.no : Math.max(own.no, knownNo);
    const nanoUsd = Math.min(own.nanoUsd, rows.committed(day));
    if (nanoUsd < own.nanoUsd || no > own.no) rows.transaction(() => rows.putOwn(day, { ...own, no, nanoUsd }));
    return { no, nanoUsd };
  }

  #covers(day: string, { nanoUsd, limitNanoUsd }: Wanted): boolean {
    const own = this.#deps.rows.own(day);
    return own?.limitNanoUsd === limitNanoUsd && this.#deps.rows.committed(day) + nanoUsd <= own.nanoUsd;
  }

  async #serve(day: string, waiting: Waiting[]): Promise<void> {
    try {
      for (let [first] = waiting; first !== undefined; [first] = waiting) {
        if (this.#covers(day, first)) {
          this.#deps.rows.transaction(first.reserve);
          first.resolve({ ok: true });
          waiting.shift();
          continue;
        }
        const { limitNanoUsd } = first;
        const otherLimit = waiting.findIndex((each) => each.limitNanoUsd !== limitNanoUsd);
        const asking = waiting.slice(
          0,
          Math.min(otherLimit === -1 ? waiting.length : otherLimit, DAY_LEASE_WANTED_MAX),
        );
        const reply = await this.#deps.ask(day, this.#request(day, asking, limitNanoUsd));
        const remaining = this.#apply(day, asking, reply, limitNanoUsd);
        waiting.splice(0, asking.length, ...remaining);
      }
    } catch (error) {
      for (const { reject } of waiting.splice(0)) reject(error);
    } finally {
      this.#waiting.delete(day);
    }
  }

  #request(day: string, asking: readonly Waiting[], limitNanoUsd: number): LeaseRequest {
    const { no, nanoUsd } = this.#deps.rows.own(day) ?? NO_LEASE;
    return {
      no: no + 1,
      leasedNanoUsd: nanoUsd,
      committedNanoUsd: this.#deps.rows.committed(day),
      wantedNanoUsd: asking.map((each) => each.nanoUsd),
      limitNanoUsd,
    };
  }

  /** Stores the lease and reserves what it covers. Returns what must be asked for again. */
  #apply(day: string, asked: readonly Waiting[], reply: LeaseReply, limitNanoUsd: number): Waiting[] {
    const { rows } = this.#deps;
    const { no, nanoUsd, covers, isWithinLimit, committedNanoUsd } = reply;
    const remaining: Waiting[] = [];
    const replies: (() => void)[] = [];
    rows.transaction(() => {
      rows.putOwn(day, { no, nanoUsd, limitNanoUsd: isWithinLimit ? limitNanoUsd : null });
      for (const [at, each] of asked.entries()) {
        if (covers?.[at] === false) replies.push(() => each.resolve({ ok: false, committedNanoUsd }));
        // A run that has ended meanwhile may have been billed above its reservation.
        else if (covers === null || rows.committed(day) + each.nanoUsd > nanoUsd) remaining.push(each);
        else {
          each.reserve();
          replies.push(() => each.resolve({ ok: true }));
        }
      }
    });
    for (const send of replies) send();
    return remaining;
  }
}
