/** Follows a group in its run object, across restarts of that object. */
import type { RunCaller } from "./caller.ts";
import type { EndedReply, GroupView, SlotView } from "../run-api/groups.ts";
import { LONG_POLL_MS } from "../limits.ts";

export class GroupReader {
  readonly #run: RunCaller;
  readonly #seq: number;

  constructor(run: RunCaller, seq: number) {
    this.#run = run;
    this.#seq = seq;
  }

  /** Resolves when the group has ended. */
  async ended(): Promise<GroupView> {
    for (;;) {
      const group = await this.#run.callWithRetry<GroupView | null>((run) => run.waitGroup(this.#seq, LONG_POLL_MS));
      if (group === null) throw new Error(`group ${this.#seq} of its run has gone`);
      if (group.status !== "running") return group;
    }
  }

  /** The group as it is now; waits up to `waitMs` for its end. */
  async look(waitMs = 0): Promise<GroupView> {
    const untilMs = Date.now() + waitMs;
    for (;;) {
      const leftMs = Math.max(0, untilMs - Date.now());
      const group = await this.#run.callWithRetry<GroupView | null>((run) =>
        run.waitGroup(this.#seq, Math.min(leftMs, LONG_POLL_MS)),
      );
      if (group === null) throw new Error(`group ${this.#seq} of its run has gone`);
      if (group.status !== "running" || Date.now() >= untilMs) return group;
    }
  }

  /** A page of slots in input order. */
  slotsFrom(index: number): Promise<SlotView[]> {
    return this.#run.callWithRetry<SlotView[]>((run) => run.results(this.#seq, index));
  }

  /** Every slot once, as it ends; a restart may change the order of those that had ended by then. */
  async *slotsAsTheyEnd(): AsyncGenerator<SlotView> {
    const yielded = new Set<number>();
    let cursor: EndedReply["cursor"] | null = null;
    for (let done = false; !done;) {
      const from: EndedReply["cursor"] | null = cursor;
      const reply: EndedReply | null = await this.#run.callWithRetry<EndedReply | null>((run) =>
        run.endedSlots(this.#seq, from, LONG_POLL_MS),
      );
      if (reply === null) throw new Error(`group ${this.#seq} of its run has gone`);
      for (const slot of reply.slots) {
        if (yielded.has(slot.index)) continue;
        yielded.add(slot.index);
        yield slot;
      }
      cursor = reply.cursor;
      done = reply.done;
    }
  }
}
