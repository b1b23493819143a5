import { expect, it } from "vitest";
import { LANES_CALLED_AT_ONCE } from "../../../../src/limits.ts";
import { callLanes } from "../../../../src/objects/clients/lanes.ts";

/** Calls of lanes that end when the test says so. */
function pendingCalls() {
  const called: number[] = [];
  const ends = new Map<number, PromiseWithResolvers<string>>();
  const call = (lane: number): Promise<string> => {
    called.push(lane);
    const end = Promise.withResolvers<string>();
    ends.set(lane, end);
    return end.promise;
  };
  return { called, call, reply: (lane: number) => ends.get(lane)?.resolve(`lane ${lane}`) };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, lane) => lane);

it("calls so many lanes at once, and the next as one replies, however long the first takes", async () => {
  const { called, call, reply } = pendingCalls();
  const ended = callLanes(upTo(LANES_CALLED_AT_ONCE + 2), call);
  expect(called).toEqual(upTo(LANES_CALLED_AT_ONCE));
  reply(5);
  await expect.poll(() => called.at(-1)).toBe(LANES_CALLED_AT_ONCE);
  reply(6);
  await expect.poll(() => called.at(-1)).toBe(LANES_CALLED_AT_ONCE + 1);
  for (const lane of called) reply(lane);
  expect((await ended).map((end) => end.status === "fulfilled" && end.value)).toEqual(
    called.map((lane) => `lane ${lane}`),
  );
});

it("says how each call has ended, in the order of the lanes", async () => {
  const ended = await callLanes([3, 1, 2], async (lane) => {
    if (lane === 1) throw new Error("out of reach");
    return lane;
  });
  expect(ended).toEqual([
    { status: "fulfilled", value: 3 },
    { status: "rejected", reason: new Error("out of reach") },
    { status: "fulfilled", value: 2 },
  ]);
});

it("calls nobody if there are none", async () => {
  expect(await callLanes([], () => Promise.reject(new Error("called")))).toEqual([]);
});
