/** How the slots of a group reach its client as they end: from this Worker's memory, and from the run what it lacks. */
import { describe, expect, it } from "vitest";
import { EndedFeed } from "../../../src/executors/ended-feed.ts";
import { ExecutedGroup } from "../../../src/executors/executed-group.ts";
import type { EndedReply, GroupView, SlotView } from "../../../src/objects/methods/groups.ts";
import { SeenSlots } from "../../../src/objects/clients/groups/seen-slots.ts";
import { groupView, slotView } from "../http/replies/views.ts";

const COUNT = 6;
/** Slots in one reply of the run. */
const PAGE = 2;
const at = (position: number) => ({ epoch: 1, position });
const slotsOf = (from: number, to: number): SlotView[] =>
  Array.from({ length: to - from }, (_, index) => slotView({ index: from + index }));

/** A group whose slots end in input order, its executor, and the cursors after which the run was read. */
function executing(charsMax = 10_000) {
  const feed = new EndedFeed(at(0), charsMax);
  const ended = Promise.withResolvers<GroupView | null>();
  const reads: number[] = [];
  let inRun = 0;
  const endedAfter = async (cursor: EndedReply["cursor"] | null): Promise<EndedReply> => {
    const from = cursor?.position ?? 0;
    reads.push(from);
    const to = Math.min(inRun, from + PAGE);
    return { slots: slotsOf(from, to), cursor: at(to), done: to === COUNT };
  };
  async function* slotsAsTheyEnd(cursor: EndedReply["cursor"] | null = null, seen = new SeenSlots()) {
    for (let from = cursor, done = false; !done;) {
      const reply = await endedAfter(from);
      const slots = seen.unseen(reply.slots);
      if (slots.length > 0) yield slots;
      from = reply.cursor;
      done = reply.done;
    }
  }
  const look = async (): Promise<GroupView> => groupView(COUNT);
  const reader = { ended: look, look, slotsFrom: async () => [], slotsAsTheyEnd, endedAfter };
  const group = new ExecutedGroup(reader, { ended: ended.promise, feed, slotsFrom: () => [] });
  const lists = group.slotsAsTheyEnd();
  return {
    /** Slots have ended, and the reply to a claim brings those from an index on, or up to `brings` of them. */
    end: (from: number, to: number, brings = to): void => {
      inRun = Math.max(inRun, to);
      feed.add({
        after: at(from),
        slots: slotsOf(from, brings),
        upTo: { cursor: at(brings), hasMore: brings < to },
      });
    },
    stop: (view: GroupView | null): void => {
      ended.resolve(view);
      feed.close();
    },
    next: async (): Promise<number[] | null> => {
      const { done, value } = await lists.next();
      return done === true ? null : value.map(({ index }) => index);
    },
    feed,
    reads,
  };
}

describe("a group that this Worker executes", () => {
  it("shows what each reply brings in one list, and reads nothing from the run", async () => {
    const { end, stop, next, reads } = executing();
    end(0, 3);
    expect(await next()).toEqual([0, 1, 2]);
    const waiting = next();
    end(3, 4);
    expect(await waiting).toEqual([3]);
    end(4, COUNT);
    stop(groupView(COUNT));
    expect([await next(), await next(), reads]).toEqual([[4, 5], null, []]);
  });

  it("reads from the run what a reply had no room for, and follows again", async () => {
    const { end, stop, next, feed, reads } = executing();
    end(0, 5, 2);
    expect(await next()).toEqual([0, 1]);
    expect([await next(), await next()]).toEqual([[2, 3], [4]]);
    const waiting = next();
    await expect.poll(() => feed.after).toEqual(at(5));
    end(5, COUNT);
    stop(groupView(COUNT));
    expect([await waiting, await next(), reads]).toEqual([[5], null, [2, 4, 5]]);
  });

  it("shows a slow client each slot once, though most were dropped for it", async () => {
    const { end, stop, next } = executing(300);
    end(0, 1);
    end(1, 3);
    end(3, COUNT);
    stop(groupView(COUNT));
    expect([await next(), await next(), await next(), await next(), await next()]).toEqual([
      [0],
      [1, 2],
      [3, 4],
      [5],
      null,
    ]);
  });

  it("leaves the rest to the run once this Worker has lost it", async () => {
    const { end, stop, next } = executing();
    end(0, 2);
    expect(await next()).toEqual([0, 1]);
    end(2, COUNT, 3);
    stop(null);
    expect([await next(), await next(), await next(), await next()]).toEqual([[2], [3, 4], [5], null]);
  });
});
