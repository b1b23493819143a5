/** Places of those who wait for a permit. */
import { describe, expect, it } from "vitest";
import { Tickets } from "../../../src/gate/runs/tickets.ts";
import { seeded } from "../../support/engine.ts";

type Holder = { ticket: number | null };
const holders = (count: number): Holder[] => Array.from({ length: count }, () => ({ ticket: null }));

describe("tickets", () => {
  it("have the places in which they were taken, once each", () => {
    const tickets = new Tickets();
    const [a, b, c] = holders(3) as [Holder, Holder, Holder];
    for (const one of [a, b, a]) tickets.take(one);
    expect([tickets.placeOf(a), tickets.placeOf(b), tickets.placeOf(c), tickets.count]).toEqual([1, 2, 3, 2]);
    tickets.end(a);
    tickets.end(a);
    expect([tickets.placeOf(a), tickets.placeOf(b), tickets.count]).toEqual([2, 1, 1]);
  });

  it("keep exact places, whoever has a turn before others and however many were taken", () => {
    const random = seeded(3);
    const tickets = new Tickets();
    const all = holders(1_000);
    let waiting: Holder[] = [];
    for (let step = 0; step < 20_000; step++) {
      const one = all[Math.floor(random() * all.length)];
      if (one === undefined) continue;
      if (one.ticket === null) {
        tickets.take(one);
        waiting.push(one);
      } else if (random() < 0.6) {
        tickets.end(one);
        waiting = waiting.filter((other) => other !== one);
      }
      if (step % 97 === 0) expect(waiting.map((each) => tickets.placeOf(each))).toEqual(waiting.map((_, at) => at + 1));
    }
    expect(tickets.count).toBe(waiting.length);
  });
});
