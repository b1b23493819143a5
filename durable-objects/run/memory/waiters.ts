/** Who waits for the run: single calls for their permits, readers. A pending request waits a bounded time. Executors are in executors/. */
import { ABANDONED_MS, RPC_WAIT_MS, WITHDRAWN_CALLS_MAX } from "../../../src/limits.ts";
import type { AcquireReply } from "../../../src/objects/methods/calls.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";
import { RenewedSet } from "../../../src/renewed/set.ts";
import { EndedCalls, type EndReply } from "./ended-calls.ts";

type WaitingCall = {
  /** The pending reply of its Worker's request; null = it has had the reply `wait`. */
  reply: ((acquired: AcquireReply) => void) | null;
  /** When its Worker has sent its last request, or lost its socket. */
  sinceMs: number;
  /** Its Worker waits at a socket. */
  hasSocket: boolean;
};

/** Single calls that wait for their permit, by call id. Their Workers wait at sockets, after a short while in a request. */
export class WaitingCalls {
  readonly #calls = new RenewedMap<string, WaitingCall>();
  readonly #send: (callId: string, acquired: AcquireReply) => void;
  /** Ids of calls whose Worker waits only to the end of the turn. */
  #brief: string[] = [];
  /** Calls that wait at their sockets and nowhere else: nothing must be done for them as time passes. */
  #asleep = 0;
  /** Ids of calls that were withdrawn lately, oldest first. */
  readonly #withdrawn = new RenewedSet<string>();
  readonly #ended = new EndedCalls();
  /** The last attempt that the Worker of a call has settled, by call, oldest first. */
  readonly #settled = new RenewedMap<string, number>();

  /** @param send Sends the decision to the socket of a call. */
  constructor(send: (callId: string, acquired: AcquireReply) => void) {
    this.#send = send;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Calls with a pending request, and calls whose Worker should come back. */
  get awake(): number {
    return this.#calls.size - this.#asleep;
  }

  add(callId: string, reply: (acquired: AcquireReply) => void, nowMs: number): void {
    this.#calls.set(callId, { reply, sinceMs: nowMs, hasSocket: false });
  }

  /** The Worker of this call waits only to the end of the turn: see `release`. */
  addBrief(callId: string): void {
    this.#brief.push(callId);
  }

  /** The Worker of a waiting call repeats its request, which ends the earlier one. False if no such call waits. */
  wait(callId: string, reply: (acquired: AcquireReply) => void, nowMs: number): boolean {
    return this.#change(callId, (call) => {
      call.reply?.({ ok: "wait" });
      call.reply = reply;
      call.sinceMs = nowMs;
    });
  }

  /** The Worker of a waiting call has a socket. False if no such call waits. */
  socketOpened(callId: string): boolean {
    return this.#change(callId, (call) => {
      call.hasSocket = true;
    });
  }

  /** The socket of a call's Worker has closed: it comes back, or the call is abandoned. */
  socketClosed(callId: string, nowMs: number): void {
    this.#change(callId, (call) => {
      call.hasSocket = false;
      call.sinceMs = nowMs;
    });
  }

  /** Replies `wait` to Workers that wait only to the end of the turn: call it there. */
  release(nowMs: number): void {
    if (this.#brief.length === 0) return;
    const brief = this.#brief;
    this.#brief = [];
    for (const callId of brief) this.#replyWait(callId, nowMs);
  }

  /** Nobody waits for this call any more. A request for it that arrives later gets nothing. */
  withdraw(callId: string): void {
    this.replyTo(callId, { ok: "wait" });
    this.#ended.delete(callId);
    this.#withdrawn.add(callId);
    if (this.#withdrawn.size <= WITHDRAWN_CALLS_MAX) return;
    const [oldest] = this.#withdrawn;
    if (oldest !== undefined) this.#withdrawn.delete(oldest);
  }

  /** Whether the Worker of a waiting call is between two requests, or has lost its socket: nothing can be sent to it. */
  isAway(callId: string): boolean {
    const call = this.#calls.get(callId);
    return call !== undefined && call.reply === null && !call.hasSocket;
  }

  /** A call has ended without an attempt of its own. Its Worker gets that at once if it waits, else with its next request. */
  end(callId: string, end: EndReply): void {
    this.#ended.add(callId, end);
    this.replyTo(callId, end);
  }

  /** How a call has ended for whose Worker this may be news; null = it has not. */
  endOf(callId: string): EndReply | null {
    return this.#ended.of(callId);
  }

  /** The Worker of a call has settled an attempt: a request for its permit that is still on its way is of no use to anybody. */
  settled(callId: string, attempt: number): void {
    this.#settled.delete(callId);
    this.#settled.set(callId, attempt);
    if (this.#settled.size <= WITHDRAWN_CALLS_MAX) return;
    const [oldest] = this.#settled.keys();
    if (oldest !== undefined) this.#settled.delete(oldest);
  }

  /** Whether nobody waits for the permit of an attempt any more. */
  isStale(callId: string, attempt: number): boolean {
    return this.#withdrawn.has(callId) || attempt <= (this.#settled.get(callId) ?? 0);
  }

  /**
   * Sends a waiting call its decision. Nobody gets it if its Worker is away. A pending request may be one that its Worker has repeated
   * over another connection since: who waits at a socket asks once more, and gets the same decision.
   */
  replyTo(callId: string, acquired: AcquireReply): void {
    const waiting = this.#calls.get(callId);
    if (waiting === undefined) return;
    if (isAsleep(waiting)) this.#asleep -= 1;
    this.#calls.delete(callId);
    if (waiting.reply === null && waiting.hasSocket) return this.#send(callId, acquired);
    waiting.reply?.(acquired);
    if (waiting.reply !== null && waiting.hasSocket) this.#send(callId, { ok: "wait" });
  }

  /** The permit of a call reached nobody, because the socket of its Worker was lost: the call waits for its Worker. */
  addAway(callId: string, nowMs: number): void {
    this.#calls.set(callId, { reply: null, sinceMs: nowMs, hasSocket: false });
  }

  /** Replies `wait` to calls that have waited long enough. Returns those whose Worker did not come back in time. */
  sweep(nowMs: number): string[] {
    const abandoned: string[] = [];
    if (this.awake === 0) return abandoned;
    for (const [callId, { reply, sinceMs, hasSocket }] of this.#calls) {
      if (reply !== null && nowMs - sinceMs >= RPC_WAIT_MS) {
        this.#replyWait(callId, nowMs);
      } else if (reply === null && !hasSocket && nowMs - sinceMs >= ABANDONED_MS) {
        this.#calls.delete(callId);
        abandoned.push(callId);
      }
    }
    return abandoned;
  }

  /** The call stays queued for ABANDONED_MS without a request or a socket of its Worker. */
  #replyWait(callId: string, nowMs: number): void {
    this.#change(callId, (call) => {
      call.reply?.({ ok: "wait" });
      call.reply = null;
      call.sinceMs = nowMs;
    });
  }

  #change(callId: string, change: (call: WaitingCall) => void): boolean {
    const call = this.#calls.get(callId);
    if (call === undefined) return false;
    if (isAsleep(call)) this.#asleep -= 1;
    change(call);
    if (isAsleep(call)) this.#asleep += 1;
    return true;
  }
}

function isAsleep({ reply, hasSocket }: WaitingCall): boolean {
  return reply === null && hasSocket;
}

type Reader = { ready: () => boolean; reply: () => void; untilMs: number };

/** Readers waiting for a change, such as the next slot of a group to end. */
export class WaitingReaders {
  #readers = new Set<Reader>();

  get size(): number {
    return this.#readers.size;
  }

  /** Calls `reply` once `ready()` is true or the time is over, whichever is first. */
  wait(ready: () => boolean, reply: () => void, untilMs: number): void {
    if (ready()) reply();
    else this.#readers.add({ ready, reply, untilMs });
  }

  /** Replies to readers whose wait is over: called after every turn, and as time passes. */
  sweep(nowMs: number): void {
    for (const reader of this.#readers) {
      if (!reader.ready() && nowMs < reader.untilMs) continue;
      this.#readers.delete(reader);
      reader.reply();
    }
  }
}
