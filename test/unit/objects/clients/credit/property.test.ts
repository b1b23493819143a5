/** Leased credit under random histories: the run's budget and width hold at every look, whatever crashes. */
import { describe, expect, it } from "vitest";
import { DIMENSIONS } from "../../../../../src/run/money/ledger.ts";
import { CreditWorld, overLimit, type CreditPlan } from "../../../../support/credit-world.ts";
import { seeded } from "../../../../support/engine.ts";

/** 1,000 histories in parts, so that none takes long on a busy machine. */
const PARTS = [0, 1, 2, 3, 4];
const HISTORIES = 200;
const STEPS = 150;

function planOf(seed: number, crashes: boolean): CreditPlan {
  const random = seeded(seed + 7);
  const usd = 200_000 + Math.floor(random() * 2_000_000);
  const tight = random() < 0.3 ? { calls: 3_000, completion_tokens: 120_000 } : {};
  return { seed, limits: { usd, ...tight }, width: 8 + Math.floor(random() * 56), crashes };
}

/** Runs a history and looks at it after every step. Returns the world, and the first fault. */
function run(plan: CreditPlan): { world: CreditWorld; fault: string | null } {
  const world = new CreditWorld(plan);
  for (let step = 0; step < STEPS; step++) {
    world.step();
    const over = overLimit(world.state, world.bill);
    if (over !== null) return { world, fault: `step ${step}: ${over}` };
    if (world.inUse > plan.width) return { world, fault: `step ${step}: ${world.inUse} of ${plan.width} permits` };
  }
  world.finish();
  return { world, fault: overLimit(world.state, world.bill) };
}

describe("credit that instances of the gateway hold", () => {
  it.each(PARTS)(
    `keeps spent + reserved, the upstream's bill and the width within their limits in ${HISTORIES} histories with crashes: part %i`,
    { tags: ["slow"] },
    (part) => {
      let credited = 0;
      let lost = 0;
      for (let seed = part * HISTORIES + 1; seed <= (part + 1) * HISTORIES; seed++) {
        const plan = planOf(seed, true);
        const { world, fault } = run(plan);
        expect(fault, `seed ${seed}`).toBeNull();
        const { ledger, attempts, credits } = world.state;
        expect([attempts.size, credits.size, ledger.openCount, ledger.reserved.usd], `seed ${seed}`).toEqual([
          0, 0, 0, 0,
        ]);
        const charged = world.events.flatMap((event) => (event.event === "credit_lost" ? [event.charged] : []));
        for (const dimension of DIMENSIONS) {
          const limit = ledger.limits[dimension];
          if (limit === null) continue;
          // All credits together never hold more, so no crash can cost more.
          for (const amounts of charged) expect(amounts[dimension], `seed ${seed}`).toBeLessThanOrEqual(limit / 100);
        }
        credited += world.credited;
        lost += charged.length;
      }
      // A test in which nothing is started inside credit, or none is lost, shows nothing.
      expect(credited).toBeGreaterThan(5 * HISTORIES);
      expect(lost).toBeGreaterThan(HISTORIES / 10);
    },
  );

  it("charges exactly what the upstream bills when nothing crashes", { tags: ["slow"] }, () => {
    let credited = 0;
    for (let seed = 1; seed <= 200; seed++) {
      const { world, fault } = run(planOf(seed, false));
      expect(fault, `seed ${seed}`).toBeNull();
      expect(world.state.ledger.spent, `seed ${seed}`).toEqual(world.bill);
      expect(world.state.ledger.reserved, `seed ${seed}`).toMatchObject({ usd: 0, calls: 0 });
      credited += world.credited;
    }
    expect(credited).toBeGreaterThan(1_000);
  });

  it("logs each call once, whoever started it", { tags: ["slow"] }, () => {
    for (let seed = 1; seed <= 100; seed++) {
      const { world } = run(planOf(seed, false));
      const ofType = (type: string) => world.events.filter(({ event }) => event === type).length;
      const calls = world.bill.calls;
      expect([ofType("attempt_started"), ofType("attempt_ended"), ofType("slot_completed")]).toEqual([
        calls,
        calls,
        calls,
      ]);
    }
  });
});
