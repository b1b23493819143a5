/** What the events of a stream report, and what each API family's reader provides to read it. */
import type { Usage } from "../../../call.ts";
import { NAME_CHARS_MAX } from "../../../limits.ts";
import type { ReportedError } from "./error.ts";

/** What the events so far have reported. */
export type StreamFacts = {
  /** As last reported; final once the stream is complete. */
  usage: Usage | null;
  /** As first named, in the upstream's words. */
  model: string | null;
  /** The upstream's id of the answer, where a client may refer to it later: of responses only. */
  id: string | null;
  finishReason: string | null;
  /** Whether the event that ends such a stream has arrived. */
  ended: boolean;
  /** The first error that the upstream reported; `isNoticed` if any of its errors was. */
  error: ReportedError | null;
};

/** How an event is changed on its way: removed, or a cost added to the usage object at a path. */
export type EventEdit = { isRemoved: boolean; usagePath: readonly string[] | null };

export const NO_EDIT: EventEdit = { isRemoved: false, usagePath: null };

/** Reads the events of one stream of its family. */
export type FamilyReader = {
  /**
   * Matches every event that may report more than a delta of the answer; only these are parsed, because a stream is
   * thousands of deltas. It may match others too.
   */
  readonly mayReport: RegExp;
  /** Matches up to where the text of a delta begins. */
  readonly deltaText: RegExp;
  /** Whether `[DONE]` is this family's last event; elsewhere it means nothing. */
  readonly endsAtDone: boolean;
  /** Notes what an event reports. */
  read: (json: Record<string, unknown>, facts: StreamFacts) => EventEdit;
  /** Whether the answer is whole if the connection closes in order now, without the event that ends a stream. */
  isWhole: (facts: StreamFacts) => boolean;
  /** Whether an event that is too large to be read is the one that ends the stream, by its first characters. */
  isLastEvent: (head: string) => boolean;
};

/** A name in an upstream's answer, cut to `NAME_CHARS_MAX`; null if the value is not a name. */
export function nameIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, NAME_CHARS_MAX).toWellFormed() : null;
}
