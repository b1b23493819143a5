/**
 * The slots of a group that its Worker shows to its client as they end: those that replies to its claims bring, in their
 * order, until they are shown. Bounded: what a slow client has not taken is dropped, and read from the run's rows later.
 */
import { answerChars } from "../answer.ts";
import type { EndedReply, SlotView } from "../objects/methods/groups.ts";

type Cursor = EndedReply["cursor"];

/** Characters that count for a slot beside its text: its numbers and names. */
const SLOT_CHARS = 200;

/** What a reply brings: the slots that ended `after` a cursor, up to another; null = that cursor was of no use. */
export type Arrival = { after: Cursor; slots: SlotView[]; upTo: { cursor: Cursor; hasMore: boolean } | null };

export class EndedFeed {
  readonly #charsMax: number;
  #slots: SlotView[] = [];
  #chars = 0;
  /** Every slot that ended up to here has been in the feed, or was read from the run. */
  #cursor: Cursor;
  #isBehind = false;
  #isClosed = false;
  #wake: () => void = () => undefined;

  /** @param start Where the group begins. @param charsMax Characters that wait to be taken. */
  constructor(start: Cursor, charsMax: number) {
    this.#cursor = start;
    this.#charsMax = charsMax;
  }

  /** What the next claim names as known; undefined while the feed is behind: then replies need bring nothing. */
  get after(): Cursor | undefined {
    return this.#isBehind ? undefined : this.#cursor;
  }

  /** Up to where the feed has brought every slot. */
  get cursor(): Cursor {
    return this.#cursor;
  }

  /** Whether slots after the cursor have ended that only the run can show. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** True once the feed brings nothing more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** A reply has come. It may bring slots for a second time, if an earlier reply was late. */
  add({ after, slots, upTo }: Arrival): void {
    if (this.#isBehind || this.#isClosed) return;
    if (upTo === null) return this.#fallBehind();
    // A reply to an earlier claim than the last one that was taken in.
    if (upTo.cursor.epoch !== this.#cursor.epoch || upTo.cursor.position < this.#cursor.position) return;
    // Should never be, because claims name the cursor: the slots between would be missing.
    if (after.position > this.#cursor.position) return this.#fallBehind();
    let chars = 0;
    for (const slot of slots) chars += SLOT_CHARS + answerChars(slot);
    // What one reply brings is in memory already, and bounded by what one settlement carries.
    if (this.#slots.length > 0 && this.#chars + chars > this.#charsMax) return this.#fallBehind();
    this.#slots.push(...slots);
    this.#chars += chars;
    this.#cursor = upTo.cursor;
    this.#isBehind = upTo.hasMore;
    if (slots.length > 0 || upTo.hasMore) this.#wake();
  }

  /** Takes the slots that wait. */
  take(): SlotView[] {
    const slots = this.#slots;
    this.#slots = [];
    this.#chars = 0;
    return slots;
  }

  /** Slots up to a cursor were read from the run; `isAll`: no other has ended by then. */
  caughtUp(cursor: Cursor, isAll: boolean): void {
    this.#cursor = cursor;
    this.#isBehind = !isAll;
  }

  /** Resolves when there is something to take, or the feed is behind, or closed. One waits at a time. */
  async changed(): Promise<void> {
    if (this.#slots.length > 0 || this.#isBehind || this.#isClosed) return;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Nothing comes any more: the Worker executes the group no longer. */
  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#wake();
  }
}
