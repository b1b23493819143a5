/**
 * Which tool calls of a run are in flight, and which wait for a permit. In memory only: a restart loses the permits, and
 * the socket of a call in flight restores its own. A permit expires after a short term unless its Worker has a socket,
 * which it opens for a call that lasts. A call that waits is replied to after a moment, and its Worker waits at a socket.
 */
import {
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  RPC_WAIT_MS,
  TOOL_CALLS_OVER_KEPT,
  TOOL_CALLS_WAITING_MAX,
  TOOL_QUEUE_MS_MAX,
  TOOL_TIMEOUT_MS_MAX,
} from "../../../src/limits.ts";
import type { ToolCallName, ToolCallRequest } from "../../../src/objects/methods/calls.ts";

/** The reply to a request: granted, refused, or the call goes on waiting without a pending request. */
export type ToolDecision = "granted" | "refused" | "waits";

/** A call whose permit was revoked, and the time that it had been in flight. */
export type RevokedCall = { callId: string; tool: string; latencyMs: number };

type InFlight = { tool: string; startedAtMs: number; endsAtMs: number };
/** `reply` null = its Worker was replied that it waits. */
type Waiting = {
  tool: string;
  reply: ((decision: ToolDecision) => void) | null;
  /** When its request is replied to without a decision. */
  releaseAtMs: number;
  untilMs: number;
};

export class ToolPermits {
  readonly #inFlight = new Map<string, InFlight>();
  /** In the order of arrival. */
  readonly #waiting = new Map<string, Waiting>();
  /** Calls whose permits were revoked: their Workers may not know it yet. Oldest first. */
  readonly #revoked = new Set<string>();

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Calls that wait with a pending request. */
  get pending(): number {
    let pending = 0;
    for (const { reply } of this.#waiting.values()) if (reply !== null) pending += 1;
    return pending;
  }

  isWaiting(callId: string): boolean {
    return this.#waiting.has(callId);
  }

  /** Queues a call; a repeated request keeps its position. `reply` is called with the decision, at once if the queue is full. */
  request({ callId, tool, waitedMs }: ToolCallRequest, reply: (decision: ToolDecision) => void, nowMs: number): void {
    const inFlight = this.#inFlight.get(callId);
    const waiting = this.#waiting.get(callId);
    const releaseAtMs = waitedMs === undefined ? Infinity : nowMs + RPC_WAIT_MS;
    if (inFlight !== undefined) {
      // Its permit was granted in a reply that never arrived.
      inFlight.endsAtMs = nowMs + LEASE_TTL_MS;
      reply("granted");
    } else if (waiting !== undefined) {
      waiting.reply?.("waits");
      waiting.reply = reply;
      waiting.releaseAtMs = releaseAtMs;
    } else if (this.#revoked.has(callId) || this.#waiting.size >= TOOL_CALLS_WAITING_MAX) reply("refused");
    // A restart forgets who waits: the time before counts.
    else this.#waiting.set(callId, { tool, reply, releaseAtMs, untilMs: nowMs + TOOL_QUEUE_MS_MAX - (waitedMs ?? 0) });
  }

  /**
   * Grants free permits to waiting calls, up to `width` in flight, and refuses calls that have waited long enough. Returns
   * those of them that have no pending request: their Workers must repeat it, to get the decision.
   */
  grant(width: number, nowMs: number): ToolCallName[] {
    const unreplied: ToolCallName[] = [];
    for (const [callId, { tool, reply, untilMs }] of this.#waiting) {
      const isFree = this.#inFlight.size < width;
      if (!isFree && nowMs < untilMs) continue;
      this.#waiting.delete(callId);
      if (isFree) this.#inFlight.set(callId, { tool, startedAtMs: nowMs, endsAtMs: nowMs + LEASE_TTL_MS });
      if (reply === null) unreplied.push({ callId, tool });
      else reply(isFree ? "granted" : "refused");
    }
    return unreplied;
  }

  /** Replies to requests that have been pending for a moment: their calls go on waiting. */
  release(nowMs: number): void {
    for (const waiting of this.#waiting.values()) {
      if (waiting.reply === null || nowMs < waiting.releaseAtMs) continue;
      waiting.reply("waits");
      waiting.reply = null;
    }
  }

  /** Renews a call's permit, or restores it after a restart. False: it was revoked, and the call must stop. */
  renew({ callId, tool }: ToolCallName, nowMs: number): boolean {
    if (this.#revoked.has(callId)) return false;
    const known = this.#inFlight.get(callId);
    const endsAtMs = Math.max(known?.endsAtMs ?? 0, nowMs + LEASE_TTL_MS);
    this.#inFlight.set(callId, { tool, startedAtMs: known?.startedAtMs ?? nowMs, endsAtMs });
    return true;
  }

  /** The call's Worker has a socket, so that its end will be noticed: the permit lasts as long as a call can. */
  hold(callId: string): void {
    const call = this.#inFlight.get(callId);
    if (call !== undefined) call.endsAtMs = call.startedAtMs + TOOL_TIMEOUT_MS_MAX + LEASE_TTL_MS;
  }

  /** That socket was lost: the Worker has the time of a reconnect to open another. */
  doubt(callId: string, nowMs: number): void {
    const call = this.#inFlight.get(callId);
    if (call !== undefined) call.endsAtMs = Math.min(call.endsAtMs, nowMs + FOUND_LEASE_TTL_MS);
  }

  /** Returns a permit. False if it was revoked before. */
  end(callId: string): boolean {
    const waiting = this.#waiting.get(callId);
    this.#waiting.delete(callId);
    // Its client is gone, but the pending request must not be left without a reply.
    waiting?.reply?.("refused");
    this.#inFlight.delete(callId);
    return !this.#revoked.has(callId);
  }

  /** Revokes permits whose term is over: their Workers are lost. */
  expire(nowMs: number): RevokedCall[] {
    return this.#revoke(({ endsAtMs }) => nowMs >= endsAtMs, nowMs);
  }

  /** Revokes every permit. */
  abort(nowMs: number): RevokedCall[] {
    return this.#revoke(() => true, nowMs);
  }

  /** Refuses every waiting call. Returns those without a pending request: their Workers must repeat it. */
  refuseWaiting(): ToolCallName[] {
    const unreplied: ToolCallName[] = [];
    for (const [callId, { tool, reply }] of this.#waiting) {
      if (reply === null) unreplied.push({ callId, tool });
      else reply("refused");
    }
    this.#waiting.clear();
    return unreplied;
  }

  /** When the first permit expires by itself; null if no call is in flight. */
  nextEndMs(): number | null {
    let next: number | null = null;
    for (const { endsAtMs } of this.#inFlight.values()) next = Math.min(next ?? Infinity, endsAtMs);
    return next;
  }

  /** Whether time alone has changed something for a call with a pending request: a permit has expired, or it has waited long enough. */
  isDue(nowMs: number): boolean {
    const waitedEnough = [...this.#waiting.values()].some(({ reply, untilMs }) => reply !== null && nowMs >= untilMs);
    return waitedEnough || (this.nextEndMs() ?? Infinity) <= nowMs;
  }

  #revoke(isOver: (call: InFlight) => boolean, nowMs: number): RevokedCall[] {
    const revoked: RevokedCall[] = [];
    for (const [callId, call] of this.#inFlight) {
      if (!isOver(call)) continue;
      this.#inFlight.delete(callId);
      this.#revoked.add(callId);
      revoked.push({ callId, tool: call.tool, latencyMs: Math.max(0, nowMs - call.startedAtMs) });
    }
    for (const callId of this.#revoked) {
      if (this.#revoked.size <= TOOL_CALLS_OVER_KEPT) break;
      this.#revoked.delete(callId);
    }
    return revoked;
  }
}
