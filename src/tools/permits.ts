/**
 * Which tool calls of a run are in flight, and which wait to be. In memory only: a restart forgets permits, and the calls
 * that are still in flight bring theirs back with the next beat. A permit whose Worker stops beating ends by itself.
 */
import { LEASE_TTL_MS, TOOL_CALLS_OVER_KEPT, TOOL_CALLS_WAITING_MAX, TOOL_QUEUE_MS_MAX } from "../limits.ts";

export type ToolCallName = { callId: string; tool: string };

/** A call that was given up, and the time it had been in flight. */
export type GivenUp = { tool: string; latencyMs: number };

type InFlight = { tool: string; startedAtMs: number; endsAtMs: number };
type Waiting = { tool: string; reply: (granted: boolean) => void; untilMs: number };

export class ToolPermits {
  readonly #inFlight = new Map<string, InFlight>();
  /** In the order in which they came. */
  readonly #waiting = new Map<string, Waiting>();
  /** Calls that were given up: their Workers may not know it yet. Oldest first. */
  readonly #over = new Set<string>();

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Puts a call in line; asking again keeps its place. `reply` is called when it is decided, at once if the line is full. */
  ask({ callId, tool }: ToolCallName, reply: (granted: boolean) => void, nowMs: number): void {
    const held = this.#inFlight.get(callId);
    const waits = this.#waiting.get(callId);
    if (held !== undefined) {
      // Its permit was granted in a reply that never arrived.
      held.endsAtMs = nowMs + LEASE_TTL_MS;
      reply(true);
    } else if (waits !== undefined) waits.reply = reply;
    else if (this.#over.has(callId) || this.#waiting.size >= TOOL_CALLS_WAITING_MAX) reply(false);
    else this.#waiting.set(callId, { tool, reply, untilMs: nowMs + TOOL_QUEUE_MS_MAX });
  }

  /** Gives free permits to those who wait, up to `width` in flight, and turns away who has waited long enough. */
  grant(width: number, nowMs: number): void {
    for (const [callId, { tool, reply, untilMs }] of this.#waiting) {
      const isFree = this.#inFlight.size < width;
      if (!isFree && nowMs < untilMs) continue;
      this.#waiting.delete(callId);
      if (isFree) this.#inFlight.set(callId, { tool, startedAtMs: nowMs, endsAtMs: nowMs + LEASE_TTL_MS });
      reply(isFree);
    }
  }

  /** Keeps a call's permit alive, or takes it up if a restart forgot it. False: it was given up, and the call must stop. */
  beat({ callId, tool }: ToolCallName, nowMs: number): boolean {
    if (this.#over.has(callId)) return false;
    const startedAtMs = this.#inFlight.get(callId)?.startedAtMs ?? nowMs;
    this.#inFlight.set(callId, { tool, startedAtMs, endsAtMs: nowMs + LEASE_TTL_MS });
    return true;
  }

  /** Takes a permit back. False for a call that was given up before. */
  end(callId: string): boolean {
    this.#waiting.delete(callId);
    this.#inFlight.delete(callId);
    return !this.#over.has(callId);
  }

  /** Ends permits whose Workers have stopped beating. */
  expire(nowMs: number): GivenUp[] {
    return this.#giveUp(({ endsAtMs }) => nowMs >= endsAtMs, nowMs);
  }

  /** Gives up every call in flight. */
  abort(nowMs: number): GivenUp[] {
    return this.#giveUp(() => true, nowMs);
  }

  /** Turns away everybody who waits. */
  refuseWaiting(): void {
    for (const { reply } of this.#waiting.values()) reply(false);
    this.#waiting.clear();
  }

  /** When a permit ends by itself if its Worker beats no more; null when none is in flight. */
  nextEndMs(): number | null {
    let next: number | null = null;
    for (const { endsAtMs } of this.#inFlight.values()) next = Math.min(next ?? Infinity, endsAtMs);
    return next;
  }

  /** Whether time alone has changed something: a permit has ended, or somebody has waited long enough. */
  isDue(nowMs: number): boolean {
    const waitedEnough = [...this.#waiting.values()].some(({ untilMs }) => nowMs >= untilMs);
    return waitedEnough || (this.nextEndMs() ?? Infinity) <= nowMs;
  }

  #giveUp(isOver: (call: InFlight) => boolean, nowMs: number): GivenUp[] {
    const given: GivenUp[] = [];
    for (const [callId, call] of this.#inFlight) {
      if (!isOver(call)) continue;
      this.#inFlight.delete(callId);
      this.#over.add(callId);
      given.push({ tool: call.tool, latencyMs: Math.max(0, nowMs - call.startedAtMs) });
    }
    for (const callId of this.#over) {
      if (this.#over.size <= TOOL_CALLS_OVER_KEPT) break;
      this.#over.delete(callId);
    }
    return given;
  }
}
