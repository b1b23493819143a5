/**
 * How single calls have ended that had no attempt of their own: refused, at their deadline, with the outcome of an equal call, or
 * left alone. Their Workers may be between two requests then, or the reply may be lost: each is told so when it comes back, and its
 * call is not queued anew, where it would be counted, and paid for, once more. In memory only.
 */
import { answerChars } from "../../../src/answer.ts";
import type { Outcome } from "../../../src/call.ts";
import { ENDED_CALLS_CHARS_MAX, ENDED_CALLS_KEPT } from "../../../src/limits.ts";
import type { AcquireReply } from "../../../src/objects/methods/calls.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";

/** A decision after which a call makes no attempt. */
export type EndReply = Exclude<AcquireReply, { ok: true } | { ok: "wait" }>;

export class EndedCalls {
  /** By call, oldest first. */
  readonly #ends = new RenewedMap<string, EndReply>();
  /** How many of these calls share an outcome: its text is in memory once. */
  readonly #sharers = new Map<Outcome, number>();
  #chars = 0;

  /** A call has ended. */
  add(callId: string, end: EndReply): void {
    this.delete(callId);
    this.#ends.set(callId, end);
    this.#count(end, 1);
    for (const oldest of this.#ends.keys()) {
      const isWithin = this.#ends.size <= ENDED_CALLS_KEPT && this.#chars <= ENDED_CALLS_CHARS_MAX;
      if (isWithin || oldest === callId) return;
      this.delete(oldest);
    }
  }

  /** How a call has ended; null = it has not, or that is forgotten. */
  of(callId: string): EndReply | null {
    return this.#ends.get(callId) ?? null;
  }

  /** Nobody comes back for this call. */
  delete(callId: string): void {
    const end = this.#ends.get(callId);
    if (end === undefined) return;
    this.#ends.delete(callId);
    this.#count(end, -1);
  }

  #count(end: EndReply, by: 1 | -1): void {
    if (end.ok === "replayed") this.#chars += by * answerChars(end.answer);
    if (end.ok !== "shared" || end.outcome.kind === "failure") return;
    const before = this.#sharers.get(end.outcome) ?? 0;
    if (before + by === 0) this.#sharers.delete(end.outcome);
    else this.#sharers.set(end.outcome, before + by);
    if (before === 0 || before + by === 0) this.#chars += by * answerChars(end.outcome);
  }
}
