/**
 * The board of a run: items that pull workers take, in the order in which their calls got permits. An item is an attempt in
 * flight whose executor waits here for its answer, so budget, retries and order are those of any attempt. In memory: executors
 * put their items back when the run object restarts, and workers keep their leases by their next heartbeat.
 */
import { ABANDONED_MS, PULL_ENDED_KEPT } from "../../limits.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** What an executor puts on the board; `requestJson`: the request as an upstream of OpenAI's protocol would get it. */
export type PullOffer = { attemptId: string; upstream: string; model: string; requestJson: string; dueMs: number };

/** An answer as the upstream of the attempt gives it. */
export type PullAnswer = { status: number; body: string };

export type PullClaim = { models: readonly string[] | null; max: number; leaseMs: number };

/** An item as a worker gets it. */
export type PullItem = PullOffer & { leaseId: string; expiresAtMs: number };

/** How a lease ended. */
export type LeaseEnd = "completed" | "cancelled" | "expired";

/** `held`: the answer is kept for its executor. `repeated`: the lease has delivered the same answer before. */
export type Delivered = "held" | "repeated" | LeaseEnd | "unknown";

type Lease = { id: string; expiresAtMs: number; leaseMs: number };
/**
 * `wasLeased`: this instance has leased it, so that an unknown lease is not one that a restart has forgotten. `goneMs`: since when
 * its executor has no call here; null = it has one. `isTaken`: the executor has the answer.
 */
type Entry = PullOffer & {
  lease: Lease | null;
  wasLeased: boolean;
  goneMs: number | null;
  answer: PullAnswer | null;
  isTaken: boolean;
};

export class PullBoard {
  readonly #items = new Map<string, Entry>();
  /** Leases that have ended, oldest first, with the answer that they delivered. */
  readonly #ended = new BoundedMap<string, { end: LeaseEnd; answer: PullAnswer | null }>(PULL_ENDED_KEPT);

  /** Puts an item on the board, or says that its executor is still there. One that is there keeps its place and its lease. */
  offer(offer: Omit<PullOffer, "requestJson"> & { requestJson: string | null }): void {
    const { attemptId, requestJson } = offer;
    const item = this.#items.get(attemptId);
    if (item !== undefined) item.goneMs = null;
    else if (requestJson !== null) {
      const fresh = { lease: null, wasLeased: false, goneMs: null, answer: null, isTaken: false };
      this.#items.set(attemptId, { ...offer, requestJson, ...fresh });
    }
  }

  /** The executor's call ends, with the answer if there is one: it comes back at once, settles, or is gone. */
  offerEnded(attemptId: string, nowMs: number): PullAnswer | null {
    const item = this.#items.get(attemptId);
    if (item === undefined) return null;
    item.goneMs = nowMs;
    item.isTaken = item.answer !== null;
    return item.answer;
  }

  /** Whether the executor of an item has its answer. */
  isTaken(attemptId: string): boolean {
    return this.#items.get(attemptId)?.isTaken === true;
  }

  has(attemptId: string): boolean {
    return this.#items.has(attemptId);
  }

  answerOf(attemptId: string): PullAnswer | null {
    return this.#items.get(attemptId)?.answer ?? null;
  }

  /** Takes an item off the board: its attempt has its answer, or was given up. */
  withdraw(attemptId: string): void {
    const item = this.#items.get(attemptId);
    if (item === undefined) return;
    this.#items.delete(attemptId);
    if (item.lease !== null)
      this.#ended.set(item.lease.id, { end: item.isTaken ? "completed" : "cancelled", answer: item.answer });
  }

  /** Takes off the items whose executors are gone. */
  prune(nowMs: number): void {
    for (const { attemptId, goneMs } of this.#items.values()) {
      if (goneMs !== null && nowMs - goneMs >= ABANDONED_MS) this.withdraw(attemptId);
    }
  }

  /** Whether a claim would get an item. */
  hasFor(claim: Pick<PullClaim, "models">, nowMs: number): boolean {
    for (const item of this.#items.values()) if (isFree(item, nowMs) && serves(claim, item)) return true;
    return false;
  }

  /** Leases free items, first come, first served. `leaseIdOf` makes an id that nobody can guess. */
  claim(claim: PullClaim, leaseIdOf: (attemptId: string) => string, nowMs: number): PullItem[] {
    const claimed: PullItem[] = [];
    for (const item of this.#items.values()) {
      if (claimed.length >= claim.max) break;
      if (!isFree(item, nowMs) || !serves(claim, item)) continue;
      if (item.lease !== null) this.#ended.set(item.lease.id, { end: "expired", answer: null });
      const lease = { id: leaseIdOf(item.attemptId), expiresAtMs: nowMs + claim.leaseMs, leaseMs: claim.leaseMs };
      Object.assign(item, { lease, wasLeased: true });
      const { attemptId, upstream, model, requestJson, dueMs } = item;
      claimed.push({
        attemptId,
        upstream,
        model,
        requestJson,
        dueMs,
        leaseId: lease.id,
        expiresAtMs: lease.expiresAtMs,
      });
    }
    return claimed;
  }

  /** Renews a lease; the time when it expires, or how it has ended. */
  renew(leaseId: string, leaseMs: number, nowMs: number): number | LeaseEnd | "unknown" {
    const item = this.#itemOf(leaseId, leaseMs, nowMs);
    if (typeof item === "string") return item;
    if (item.answer !== null) return "completed";
    const expiresAtMs = nowMs + leaseMs;
    item.lease = { id: leaseId, expiresAtMs, leaseMs };
    return expiresAtMs;
  }

  /** Takes the answer of a lease. */
  deliver(leaseId: string, answer: PullAnswer, nowMs: number): Delivered {
    const item = this.#itemOf(leaseId, 0, nowMs);
    if (typeof item === "string") {
      const before = this.#ended.get(leaseId)?.answer;
      return before != null && isSame(before, answer) ? "repeated" : item;
    }
    if (item.answer !== null) return isSame(item.answer, answer) ? "held" : "completed";
    item.answer = answer;
    return "held";
  }

  /** The item of a lease that holds, also of one that an earlier instance gave; else how it ended. */
  #itemOf(leaseId: string, leaseMs: number, nowMs: number): Entry | LeaseEnd | "unknown" {
    const item = this.#items.get(attemptIdOf(leaseId));
    const ended = this.#ended.get(leaseId)?.end;
    if (ended !== undefined || item === undefined) return ended ?? "unknown";
    if (item.lease === null && !item.wasLeased) {
      Object.assign(item, { lease: { id: leaseId, expiresAtMs: nowMs + leaseMs, leaseMs }, wasLeased: true });
      return item;
    }
    if (item.lease?.id !== leaseId) return "unknown";
    return item.answer === null && item.lease.expiresAtMs < nowMs ? "expired" : item;
  }
}

function isFree({ lease, answer }: Entry, nowMs: number): boolean {
  return answer === null && (lease === null || lease.expiresAtMs < nowMs);
}

function serves({ models }: Pick<PullClaim, "models">, { upstream, model }: PullOffer): boolean {
  return models === null || models.includes(`${upstream}/${model}`) || models.includes(upstream);
}

function isSame(one: PullAnswer, other: PullAnswer): boolean {
  return one.status === other.status && one.body === other.body;
}

/** A lease's id begins with its attempt's, so that it can be recognised by an instance that has not given it. */
export function leaseIdFor(attemptId: string, secret: string): string {
  return `${attemptId}${SEPARATOR}${secret}`;
}

export function attemptIdOf(leaseId: string): string {
  return leaseId.split(SEPARATOR)[0] ?? "";
}

const SEPARATOR = "~";
