/**
 * The budget of a day under random histories: parts open and end runs, messages between them and the whole are late, lost and repeated,
 * and either side's instances end with what they have not stored.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LeasedDay, PARTS } from "../../../support/leased-day.ts";
import { DAY_LEASE_SHARES } from "../../../../src/limits.ts";

/** `FANOUT_PROPERTY_RUNS` asks for more, and `FANOUT_PROPERTY_SEED` for others. */
const RUNS = Number(process.env["FANOUT_PROPERTY_RUNS"] ?? 150);
const SEED = Number(process.env["FANOUT_PROPERTY_SEED"] ?? 1);
const SLOW = { tags: ["slow"], timeout: 60_000 + RUNS * 200 };
/** Small amounts: every history comes to the end of the budget. */
const LIMIT = 1_000;
const LOWER_LIMIT = 600;

const part = fc.nat(PARTS - 1);
const at = fc.nat(50);
const limit = fc.constantFrom(LIMIT, LIMIT, LIMIT, LOWER_LIMIT);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("open" as const), part, nanoUsd: fc.nat(300), limit }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("end" as const), part, at, spent: fc.nat(300), overrun: fc.constant(0) }),
  },
  { weight: 9, arbitrary: fc.record({ do: fc.constant("deliver" as const), at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("repeat" as const), at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crashPart" as const), part }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crashWhole" as const) }) },
);
const history = fc.array(step, { minLength: 20, maxLength: 120, size: "max" });

describe("the budget of a day", () => {
  it(
    "is never exceeded by what is open and spent, and what is left of it can be used once all is quiet",
    SLOW,
    async () => {
      let [opened, refused, replayed] = [0, 0, 0];
      await fc.assert(
        fc.asyncProperty(history, async (steps) => {
          const day = new LeasedDay();
          for (const each of steps) {
            await day.step(each);
            const { committed, leased, aboveWhole } = day.look();
            expect(committed).toBeLessThanOrEqual(LIMIT);
            expect(leased).toBeLessThanOrEqual(LIMIT);
            expect(aboveWhole).toEqual([]);
          }
          await day.quiet();
          const left = LIMIT - day.look().committed;
          expect(await day.openAlone(0, left + 1, LIMIT)).toBe(false);
          expect(await day.openAlone(0, left, LIMIT)).toBe(true);
          expect(day.look().committed).toBe(LIMIT);
          opened += day.opened;
          refused += day.refused;
          replayed += day.repeatedReplies;
        }),
        { numRuns: RUNS, seed: SEED },
      );
      // The histories have what they are to have.
      for (const count of [opened, refused, replayed]) expect(count).toBeGreaterThan(RUNS);
    },
  );

  it("counts what upstreams have billed above reservations, and nothing else above it", SLOW, async () => {
    const overrunning = fc.array(
      fc.oneof(
        { weight: 4, arbitrary: step },
        {
          weight: 1,
          arbitrary: fc.record({ do: fc.constant("end" as const), part, at, spent: fc.nat(900), overrun: fc.nat(500) }),
        },
      ),
      { minLength: 20, maxLength: 120, size: "max" },
    );
    let overruns = 0;
    await fc.assert(
      fc.asyncProperty(overrunning, async (steps) => {
        const day = new LeasedDay();
        for (const each of steps) {
          await day.step(each);
          const { committed, leased, aboveWhole } = day.look();
          expect(committed).toBeLessThanOrEqual(LIMIT + day.overruns);
          expect(leased).toBeLessThanOrEqual(LIMIT + day.overruns);
          expect(aboveWhole).toEqual([]);
        }
        await day.quiet();
        await day.reportAll();
        const left = LIMIT - day.look().committed;
        expect(await day.openAlone(1, Math.max(1, left + 1), LIMIT)).toBe(false);
        if (left > 0) expect(await day.openAlone(1, left, LIMIT)).toBe(true);
        overruns += day.overruns;
      }),
      { numRuns: RUNS, seed: SEED },
    );
    expect(overruns).toBeGreaterThan(0);
  });

  it("is asked for a number of leases that does not grow with the number of runs", SLOW, async () => {
    const day = new LeasedDay();
    const runs = 5_000;
    for (let run = 0; run < runs; run++) {
      expect(await day.openAlone(run % PARTS, 1, 1_000_000)).toBe(true);
    }
    // Each part has a share of what is left, again and again: less each time, and none of the runs has had to wait for the others'.
    expect(day.requests).toBeLessThan(10 * PARTS);
    expect(day.requests).toBeGreaterThanOrEqual(Math.min(PARTS, DAY_LEASE_SHARES));
  });
});
