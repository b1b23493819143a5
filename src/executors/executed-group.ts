/** A group that this Worker executes, as its answer reads it: from memory where it can, else from the run object. */
import type { GroupView, SlotView } from "../objects/methods/groups.ts";
import type { GroupReader, GroupSource } from "../objects/clients/groups/group-reader.ts";
import { SeenSlots } from "../objects/clients/groups/seen-slots.ts";
import type { EndedFeed } from "./ended-feed.ts";
import type { GroupExecutor } from "./group-executor.ts";

/** What reads the group in its run object. */
type Reader = Pick<GroupReader, "ended" | "look" | "slotsFrom" | "slotsAsTheyEnd" | "endedAfter">;
type Executed = Pick<GroupExecutor, "ended" | "slotsFrom" | "feed">;

export class ExecutedGroup implements GroupSource {
  readonly #reader: Reader;
  readonly #executor: Executed;

  constructor(reader: Reader, executor: Executed) {
    this.#reader = reader;
    this.#executor = executor;
  }

  /** Resolves when the group has ended. */
  async ended(): Promise<GroupView> {
    return (await this.#executor.ended) ?? this.#reader.ended();
  }

  /** The group as it is now; waits up to `waitMs` for its end. */
  look(waitMs = 0): Promise<GroupView> {
    return this.#reader.look(waitMs);
  }

  /** Slots in input order from an index on; of a group that has ended. */
  async slotsFrom(index: number): Promise<SlotView[]> {
    const known = this.#executor.slotsFrom(index);
    return known.length > 0 ? known : this.#reader.slotsFrom(index);
  }

  /** Every slot once, as it ends: as the executor learns of it, or from the run while the client is too slow for that. */
  async *slotsAsTheyEnd(): AsyncGenerator<SlotView[]> {
    const { feed } = this.#executor;
    if (feed === null) return yield* this.#reader.slotsAsTheyEnd();
    const seen = new SeenSlots();
    for (;;) {
      await feed.changed();
      const slots = seen.unseen(feed.take());
      if (slots.length > 0) yield slots;
      else if (feed.isClosed) return yield* this.#rest(feed, seen);
      else if (feed.isBehind) yield* this.#catchUp(feed, seen);
    }
  }

  /** What this Worker has not seen of its group, which has ended or is executed by others now. */
  async *#rest({ cursor }: EndedFeed, seen: SeenSlots): AsyncGenerator<SlotView[]> {
    const view = await this.#executor.ended;
    if (view === null || seen.size < view.count) yield* this.#reader.slotsAsTheyEnd(cursor, seen);
  }

  async *#catchUp(feed: EndedFeed, seen: SeenSlots): AsyncGenerator<SlotView[]> {
    const { slots, cursor } = await this.#reader.endedAfter(feed.cursor);
    feed.caughtUp(cursor, slots.length === 0);
    const unseen = seen.unseen(slots);
    if (unseen.length > 0) yield unseen;
  }
}
