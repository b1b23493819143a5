import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

/** A call that waits too long says so in time, instead of leaving its client waiting. */
describe("deadline_ms", () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.stop());

  const slow = "sim/slow?ms=3000";
  const query = (run: RunAccess, json: object) => run.send("/query", { method: "POST", json });
  /** Holds the run's one permit, or its one call's worth of money, for three seconds. */
  const occupy = (run: RunAccess) => query(run, { prompt: "a", model: slow });

  it(
    "fails slots that have not started in time, and keeps the answers of those that have",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ max_parallel: 1 });
      const json = { prompts: ["a", "b", "c"], model: slow, deadline_ms: 2_000 };
      const group = groupOf(await run.send("/batch", { method: "POST", json }));
      expect(group.status).toBe("partial");
      expect(group.errors.map((error) => error?.code ?? null)).toEqual([
        null,
        "deadline_exceeded",
        "deadline_exceeded",
      ]);
    },
  );

  it("fails a query that is queued for a permit with 504", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ max_parallel: 1 });
    const [first, late] = await Promise.all([
      occupy(run),
      later(run, () => query(run, { prompt: "b", deadline_ms: 200 })),
    ]);
    expect([late.status, errorOf(late).code]).toEqual([504, "deadline_exceeded"]);
    expect(first.status).toBe(200);
  });

  it("fails a query that waits for budget with a retryable 402", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ max_parallel: 8, budget: { calls: 1 } });
    const [first, late] = await Promise.all([
      occupy(run),
      later(run, () => query(run, { prompt: "b", deadline_ms: 200 })),
    ]);
    const { code, retryable } = errorOf(late);
    expect([late.status, code, retryable]).toEqual([402, "in_flight_budget_exhausted", true]);
    expect(first.status).toBe(200);
  });
});

/** Sends a request while the run's first call is in flight. */
async function later<T>(run: RunAccess, send: () => Promise<T>): Promise<T> {
  await expect.poll(async () => (await documentOf(run)).budget.calls.reserved).toBe(1);
  return send();
}
