/** What the tap learns from a stream, and what it needs of each family's reader to learn it. */
import type { Usage } from "../call.ts";
import { NAME_CHARS_MAX } from "../limits.ts";
import type { ReportedError } from "./sse-error.ts";

/** What the events so far have said. */
export type StreamFacts = {
  /** As last reported; final once the stream is complete. */
  usage: Usage | null;
  /** As first named, in the upstream's words. */
  model: string | null;
  finishReason: string | null;
  /** Whether the event came that ends such a stream. */
  ended: boolean;
  /** The first error that the upstream reported, but `heard` if any of them was. */
  error: ReportedError | null;
};

/** What becomes of an event that was read: it goes on, with a cost in the usage object at a path, or it is taken out. */
export type Verdict = { strip: boolean; usagePath: readonly string[] | null };

export const PASS: Verdict = { strip: false, usagePath: null };

/** One stream's reader of one family's events. */
export type FamilyReader = {
  /** Finds every event that says more than a piece of its answer; only these are parsed. May find others too. */
  readonly telling: RegExp;
  /** Ends where the text of a piece of the answer begins. */
  readonly piece: RegExp;
  /** Whether `[DONE]` is this family's last event; in others it means nothing. */
  readonly endsAtDone: boolean;
  /** Notes what an event says. */
  read: (json: Record<string, unknown>, facts: StreamFacts) => Verdict;
  /** Whether the answer is whole if the connection is closed in order now, without the event that ends a stream. */
  isWhole: (facts: StreamFacts) => boolean;
  /** Whether an event too large to be read is the one that ends the stream, by its first characters. */
  endsWith: (head: string) => boolean;
};

/** A model's or a reason's name; null where it is none. */
export function nameIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, NAME_CHARS_MAX).toWellFormed() : null;
}
