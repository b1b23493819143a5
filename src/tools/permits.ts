/**
 * Which tool calls of a run are in flight, and which wait for a permit. In memory only: a restart loses the permits, and
 * the socket of a call in flight restores its own. A permit expires after a short term unless its Worker has a socket,
 * which it opens for a call that lasts.
 */
import {
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  TOOL_CALLS_OVER_KEPT,
  TOOL_CALLS_WAITING_MAX,
  TOOL_QUEUE_MS_MAX,
  TOOL_TIMEOUT_MS_MAX,
} from "../limits.ts";

export type ToolCallName = { callId: string; tool: string };

/** A call whose permit was revoked, and the time that it had been in flight. */
export type RevokedCall = { callId: string; tool: string; latencyMs: number };

type InFlight = { tool: string; startedAtMs: number; endsAtMs: number };
type Waiting = { tool: string; reply: (granted: boolean) => void; untilMs: number };

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

  /** Queues a call; a repeated request keeps its position. `reply` is called with the decision, at once if the queue is full. */
  request({ callId, tool }: ToolCallName, reply: (granted: boolean) => void, nowMs: number): void {
    const inFlight = this.#inFlight.get(callId);
    const waiting = this.#waiting.get(callId);
    if (inFlight !== undefined) {
      // Its permit was granted in a reply that never arrived.
      inFlight.endsAtMs = nowMs + LEASE_TTL_MS;
      reply(true);
    } else if (waiting !== undefined) waiting.reply = reply;
    else if (this.#revoked.has(callId) || this.#waiting.size >= TOOL_CALLS_WAITING_MAX) reply(false);
    else this.#waiting.set(callId, { tool, reply, untilMs: nowMs + TOOL_QUEUE_MS_MAX });
  }

  /** Grants free permits to waiting calls, up to `width` in flight, and refuses calls that have waited long enough. */
  grant(width: number, nowMs: number): void {
    for (const [callId, { tool, reply, untilMs }] of this.#waiting) {
      const isFree = this.#inFlight.size < width;
      if (!isFree && nowMs < untilMs) continue;
      this.#waiting.delete(callId);
      if (isFree) this.#inFlight.set(callId, { tool, startedAtMs: nowMs, endsAtMs: nowMs + LEASE_TTL_MS });
      reply(isFree);
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
    waiting?.reply(false);
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

  /** Refuses every waiting call. */
  refuseWaiting(): void {
    for (const { reply } of this.#waiting.values()) reply(false);
    this.#waiting.clear();
  }

  /** When the first permit expires by itself; null if no call is in flight. */
  nextEndMs(): number | null {
    let next: number | null = null;
    for (const { endsAtMs } of this.#inFlight.values()) next = Math.min(next ?? Infinity, endsAtMs);
    return next;
  }

  /** Whether time alone has changed something: a permit has expired, or a call has waited long enough. */
  isDue(nowMs: number): boolean {
    const waitedEnough = [...this.#waiting.values()].some(({ untilMs }) => nowMs >= untilMs);
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
