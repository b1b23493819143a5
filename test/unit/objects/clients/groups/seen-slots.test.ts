import { expect, it } from "vitest";
import { SeenSlots } from "../../../../../src/objects/clients/groups/seen-slots.ts";

const slotsOf = (...indexes: number[]) => indexes.map((index) => ({ index }));

it("lets each slot through once, in the order in which it comes", () => {
  const seen = new SeenSlots();
  expect(seen.unseen(slotsOf(7, 0, 7, 8))).toEqual(slotsOf(7, 0, 8));
  expect(seen.unseen(slotsOf(8, 1, 0))).toEqual(slotsOf(1));
  expect(seen.size).toBe(4);
});

it("knows every slot of the largest batch", () => {
  const seen = new SeenSlots();
  const all = slotsOf(...Array.from({ length: 50_000 }, (_, index) => 49_999 - index));
  expect(seen.unseen(all)).toEqual(all);
  expect([seen.unseen(all), seen.size]).toEqual([[], 50_000]);
});
