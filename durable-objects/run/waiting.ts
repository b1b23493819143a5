/** Callers that an object has left waiting: lanes that want work, single calls, readers. Each waits a bounded time. */
import { ABANDONED_MS, LONG_POLL_MS } from "../../src/limits.ts";
import type { AcquireReply, ClaimReply } from "./rpc.ts";

type Claim = { want: number; waits: boolean; reply: (claim: ClaimReply) => void };
type WaitingLane = Claim & { sinceMs: number };

const NO_WORK: ClaimReply = { jobs: [], epoch: 0, defaults: {}, ask: true, lingerMs: 0 };
const NOTHING_QUEUED: ClaimReply = { ...NO_WORK, ask: false };

/** Lanes waiting for work, in the order in which they came. A lane waits once: its newer call answers its older one. */
export class WaitingLanes {
  #lanes = new Map<number, WaitingLane>();

  get size(): number {
    return this.#lanes.size;
  }

  has(lane: number): boolean {
    return this.#lanes.has(lane);
  }

  /** Leaves a lane waiting for up to `want` attempts. */
  wait(lane: number, claim: Claim, nowMs: number): void {
    this.answer(lane, NO_WORK);
    if (claim.want > 0) this.#lanes.set(lane, { ...claim, sinceMs: nowMs });
    else claim.reply(NOTHING_QUEUED);
  }

  /** Answers those that got nothing in this turn and do not wait for the next. */
  release(ask: boolean): void {
    for (const [lane, { waits }] of [...this.#lanes]) {
      if (!ask || !waits) this.answer(lane, ask ? NO_WORK : NOTHING_QUEUED);
    }
  }

  /** How many attempts each waiting lane can take, as dispatch counts them down. */
  offers(): Map<number, number> {
    const offers = new Map<number, number>();
    for (const [lane, { want }] of this.#lanes) offers.set(lane, want);
    return offers;
  }

  answer(lane: number, claim: ClaimReply): void {
    const waiting = this.#lanes.get(lane);
    this.#lanes.delete(lane);
    waiting?.reply(claim);
  }

  /** Answers the lanes that have waited long enough; they ask again. */
  sweep(nowMs: number): void {
    for (const [lane, { sinceMs }] of [...this.#lanes]) if (nowMs - sinceMs >= LONG_POLL_MS) this.answer(lane, NO_WORK);
  }
}

type WaitingCall = {
  /** null once it has been told to ask again, until it does. */
  reply: ((acquired: AcquireReply) => void) | null;
  sinceMs: number;
};

/** Single calls whose Worker waits for their permit, by call id. */
export class WaitingCalls {
  #calls = new Map<string, WaitingCall>();

  get size(): number {
    return this.#calls.size;
  }

  add(callId: string, reply: (acquired: AcquireReply) => void, nowMs: number): void {
    this.#calls.set(callId, { reply, sinceMs: nowMs });
  }

  /** Takes up the place of a call that asks again. False when it has none. */
  wait(callId: string, reply: (acquired: AcquireReply) => void, nowMs: number): boolean {
    if (!this.#calls.has(callId)) return false;
    this.add(callId, reply, nowMs);
    return true;
  }

  answer(callId: string, acquired: AcquireReply): void {
    const waiting = this.#calls.get(callId);
    this.#calls.delete(callId);
    waiting?.reply?.(acquired);
  }

  /** Tells those who have waited long enough to ask again; returns those who were told and did not. */
  sweep(nowMs: number): string[] {
    const abandoned: string[] = [];
    for (const [callId, call] of this.#calls) {
      if (call.reply !== null && nowMs - call.sinceMs >= LONG_POLL_MS) {
        call.reply({ ok: "wait" });
        this.#calls.set(callId, { reply: null, sinceMs: nowMs });
      } else if (call.reply === null && nowMs - call.sinceMs >= ABANDONED_MS) {
        this.#calls.delete(callId);
        abandoned.push(callId);
      }
    }
    return abandoned;
  }
}

type Reader = { ready: () => boolean; reply: () => void; untilMs: number };

/** Readers waiting for a group to move on. */
export class WaitingReaders {
  #readers = new Set<Reader>();

  get size(): number {
    return this.#readers.size;
  }

  /** Calls `reply` once `ready` holds or the time is over, whichever is first. */
  wait(ready: () => boolean, reply: () => void, untilMs: number): void {
    if (ready()) reply();
    else this.#readers.add({ ready, reply, untilMs });
  }

  /** Answers those who wait no more: after every turn, and as time passes. */
  sweep(nowMs: number): void {
    for (const reader of this.#readers) {
      if (!reader.ready() && nowMs < reader.untilMs) continue;
      this.#readers.delete(reader);
      reader.reply();
    }
  }
}
