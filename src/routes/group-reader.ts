/** Follows a group in its run object, across restarts of that object. */
import type { Objects } from "../../durable-objects/address.ts";
import { untilAnswered } from "../../durable-objects/again.ts";
import type { EndedReply, GroupView, SlotView } from "../../durable-objects/run/rpc.ts";
import { LONG_POLL_MS } from "../limits.ts";

export class GroupReader {
  readonly #objects: Objects;
  readonly #runId: string;
  readonly #seq: number;

  constructor(objects: Objects, runId: string, seq: number) {
    this.#objects = objects;
    this.#runId = runId;
    this.#seq = seq;
  }

  /** Resolves when the group has ended. */
  async ended(): Promise<GroupView> {
    for (;;) {
      const group = await untilAnswered<GroupView | null>(this.#objects, this.#runId, (run) => run.waitGroup(this.#seq, LONG_POLL_MS));
      if (group === null) throw new Error(`group ${this.#seq} of run ${this.#runId} has gone`);
      if (group.status !== "running") return group;
    }
  }

  /** A page of slots in input order. */
  slotsFrom(index: number): Promise<SlotView[]> {
    return untilAnswered<SlotView[]>(this.#objects, this.#runId, (run) => run.results(this.#seq, index));
  }

  /** Every slot once, as it ends; a restart may change the order of those that had ended by then. */
  async *slotsAsTheyEnd(): AsyncGenerator<SlotView> {
    const told = new Set<number>();
    let cursor: EndedReply["cursor"] | null = null;
    for (let done = false; !done; ) {
      const from: EndedReply["cursor"] | null = cursor;
      const reply: EndedReply | null = await untilAnswered<EndedReply | null>(this.#objects, this.#runId, (run) =>
        run.endedSlots(this.#seq, from, LONG_POLL_MS),
      );
      if (reply === null) throw new Error(`group ${this.#seq} of run ${this.#runId} has gone`);
      for (const slot of reply.slots) {
        if (told.has(slot.index)) continue;
        told.add(slot.index);
        yield slot;
      }
      cursor = reply.cursor;
      done = reply.done;
    }
  }
}
