/** The work on a provider's batches, with the engine, against providers that behave by seeds, in virtual time. */
import { describe, expect, it } from "vitest";
import { BEHAVIOURS, type Behaviour } from "../../../support/batch-behaviours.ts";
import { BatchWorld, STANDARD_NANO_USD, type BatchHistory } from "../../../support/batch-world.ts";

/** Three batches of the largest size would make the test slow; slots of several pages are in the contract test. */
const SLOTS = 60;

async function ran(history: Partial<BatchHistory> & { behaviour: Behaviour; seed: number }): Promise<BatchWorld> {
  const world = new BatchWorld({ slots: SLOTS, crashes: 0, ...history });
  await world.run();
  return world;
}

const costOf = ({ engine }: BatchWorld): number => engine.state.ledger.spent.usd;

describe("a group that goes through its provider's batches", () => {
  it(
    "has all of its answers before its deadline, and nothing reserved, in 100 of 100 histories",
    { tags: ["slow"] },
    async () => {
      let met = 0;
      for (let seed = 1; seed <= 100; seed++) {
        const behaviour = BEHAVIOURS[seed % BEHAVIOURS.length] ?? "prompt";
        const world = await ran({ behaviour, seed, crashes: seed % 2 === 0 ? 0.05 : 0 });
        const { counts, endedAtMs } = world.group;
        expect([seed, behaviour, counts.completed]).toEqual([seed, behaviour, SLOTS]);
        expect(world.engine.state.ledger.reserved.usd).toBe(0);
        if (endedAtMs !== null && endedAtMs <= world.deadlineAtMs) met += 1;
      }
      expect(met).toBe(100);
    },
  );

  it.each([1, 2, 3, 4, 5, 6])(
    "costs less by 45 percent or more if the provider keeps its promise, with seed %i",
    async (seed) => {
      const world = await ran({ behaviour: "prompt", seed });
      expect(costOf(world)).toBeLessThanOrEqual(0.55 * SLOTS * STANDARD_NANO_USD);
      expect(world.liveCalls).toBe(0);
    },
  );

  it("is charged what the provider bills for its batches, and for the calls that are sent live", async () => {
    for (const behaviour of ["prompt", "partial", "expires", "never", "invalid", "full", "refuses"] as const) {
      // A seed that 3 divides: no request fails.
      const world = await ran({ behaviour, seed: 9 });
      const billed = (world.provider.billed / 2 + world.liveCalls) * STANDARD_NANO_USD;
      expect([behaviour, costOf(world)]).toEqual([behaviour, billed]);
    }
  });

  it("is submitted once, whatever crashes between two steps", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const world = await ran({ behaviour: "prompt", seed, crashes: 0.2 });
      const ids = world.provider.batches.flatMap(({ lines }) => lines.map(({ customId }) => customId));
      expect([seed, ids.length]).toEqual([seed, new Set(ids).size]);
    }
  });

  it("waits for room at a provider that is full, and is sent live if there is none in time", async () => {
    const world = await ran({ behaviour: "full", seed: 3 });
    expect(world.provider.batches).toHaveLength(3);
    expect(world.liveCalls).toBe(0);
  });
});
