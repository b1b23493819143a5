import { describe, expect, it } from "vitest";
import { EndedFeed, type Arrival } from "../../../src/executors/ended-feed.ts";
import { slotView } from "../http/replies/views.ts";

const START = { epoch: 1, position: 0 };
const at = (position: number, epoch = 1) => ({ epoch, position });

/** Slots `from` to `to` of a group whose slots end in input order. */
const arrival = (from: number, to: number, { hasMore = false, text = "t" } = {}): Arrival => ({
  after: at(from),
  slots: Array.from({ length: to - from }, (_, index) => slotView({ index: from + index, text })),
  upTo: { cursor: at(to), hasMore },
});

const indexesOf = (feed: EndedFeed): number[] => feed.take().map(({ index }) => index);

/** Whether a promise has settled once everything that waits for nothing has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => (settled = true));
  await new Promise((resolve) => setTimeout(resolve, 0));
  return settled;
}

describe("the feed of ended slots", () => {
  it("brings what replies bring, in their order, and names how far it goes", () => {
    const feed = new EndedFeed(START, 10_000);
    expect(feed.after).toEqual(START);
    feed.add(arrival(0, 2));
    feed.add(arrival(2, 3));
    expect([feed.after, indexesOf(feed), indexesOf(feed)]).toEqual([at(3), [0, 1, 2], []]);
  });

  it("wakes who waits for a slot, and nobody for a reply without one", async () => {
    const feed = new EndedFeed(START, 10_000);
    const changed = feed.changed();
    feed.add(arrival(0, 0));
    expect(await isSettled(changed)).toBe(false);
    feed.add(arrival(0, 1));
    expect(await isSettled(changed)).toBe(true);
    expect(await isSettled(feed.changed())).toBe(true);
  });

  it("takes in a reply that overlaps with the one before, and drops one that is older", () => {
    const feed = new EndedFeed(START, 10_000);
    feed.add(arrival(0, 2));
    feed.add(arrival(0, 3));
    feed.add(arrival(0, 1));
    expect([feed.cursor, indexesOf(feed)]).toEqual([at(3), [0, 1, 0, 1, 2]]);
  });

  it("falls behind rather than keep more than it may, and follows again once it has caught up", async () => {
    const feed = new EndedFeed(START, 1_000);
    feed.add(arrival(0, 2));
    feed.add(arrival(2, 3, { text: "x".repeat(1_000) }));
    expect([feed.isBehind, feed.after, feed.cursor]).toEqual([true, undefined, at(2)]);
    // What comes while it is behind comes with the catch-up.
    feed.add(arrival(3, 4));
    expect(indexesOf(feed)).toEqual([0, 1]);
    expect(await isSettled(feed.changed())).toBe(true);
    feed.caughtUp(at(3), false);
    expect(feed.after).toBeUndefined();
    feed.caughtUp(at(4), true);
    expect([feed.isBehind, feed.after]).toEqual([false, at(4)]);
  });

  it("keeps one reply of any size while nothing else waits: it is in memory already", () => {
    const feed = new EndedFeed(START, 1_000);
    feed.add(arrival(0, 1, { text: "x".repeat(5_000) }));
    expect([feed.isBehind, indexesOf(feed)]).toEqual([false, [0]]);
  });

  it("is behind when a reply was too large for all that had ended", () => {
    const feed = new EndedFeed(START, 10_000);
    feed.add(arrival(0, 2, { hasMore: true }));
    expect([feed.isBehind, feed.cursor, indexesOf(feed)]).toEqual([true, at(2), [0, 1]]);
  });

  it("is behind when its cursor is of an instance of the run that is gone", () => {
    const feed = new EndedFeed(START, 10_000);
    feed.add({ after: START, slots: [], upTo: null });
    expect(feed.isBehind).toBe(true);
    feed.caughtUp(at(7, 2), true);
    // A reply of the earlier instance that is late.
    feed.add(arrival(0, 9));
    expect([feed.after, indexesOf(feed)]).toEqual([at(7, 2), []]);
  });

  it("wakes who waits when nothing more comes", async () => {
    const feed = new EndedFeed(START, 10_000);
    const changed = feed.changed();
    feed.close();
    expect([feed.isClosed, await isSettled(changed), await isSettled(feed.changed())]).toEqual([true, true, true]);
  });
});
