/** A child run as a reservation of capacity: a request waits for room, is told what is short, and frees its part when it ends. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const opened = z.looseObject({ id: z.string(), token: z.string() });

const reserve = (parent: RunAccess, json: Record<string, unknown>) => parent.send("/runs", { json });
const close = (parent: RunAccess, id: string) => parent.send(`/runs/${id}/close`, { method: "POST" });

async function reserved(parent: RunAccess, json: Record<string, unknown>): Promise<string> {
  const answer = await reserve(parent, json);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return opened.parse(answer.json).id;
}

/** Resolves once another request waits: then one for a call that would be free is refused, for it would overtake. */
async function someoneWaits(parent: RunAccess): Promise<void> {
  for (;;) {
    const answer = await reserve(parent, { calls: 1, wait_ms: 0 });
    if (answer.status === 409) return;
    await close(parent, opened.parse(answer.json).id);
  }
}

describe("a child run with wait_ms", () => {
  it("is opened at once if there is room, and calls beside budget is short for budget.calls", async () => {
    const parent = await world.openRun({ budget: { calls: 10 } });
    await reserved(parent, { calls: 4, wait_ms: 0 });
    expect((await documentOf(parent)).budget.calls).toMatchObject({ reserved: 4, remaining: 6 });
    const both = errorOf(await reserve(parent, { calls: 1, budget: { calls: 1 }, wait_ms: 0 }));
    expect(both).toMatchObject({ code: "invalid_request", param: "calls" });
  });

  it("is refused with 409 and every shortage if there is no room now", async () => {
    const parent = await world.openRun({ budget: { calls: 10, usd: 1 } });
    await reserved(parent, { budget: { calls: 8, usd: 0.75 }, wait_ms: 0 });
    const answer = await reserve(parent, { budget: { calls: 3, usd: 0.5 }, wait_ms: 0 });
    expect([answer.status, errorOf(answer)]).toEqual([
      409,
      expect.objectContaining({
        code: "no_capacity",
        retryable: true,
        waited_ms: 0,
        reasons: [
          { what: "usd", requested: 0.5, available: 0.25, limit: 1 },
          { what: "calls", requested: 3, available: 2, limit: 10 },
        ],
      }),
    ]);
    expect((await documentOf(parent)).budget.calls).toMatchObject({ reserved: 8 });
  });

  it("is refused with 422 if it can never fit, however long it would wait", async () => {
    const parent = await world.openRun({ budget: { calls: 10 } });
    await reserved(parent, { calls: 10, wait_ms: 0 });
    const answer = await reserve(parent, { calls: 11, wait_ms: 60_000 });
    expect([answer.status, errorOf(answer)]).toEqual([
      422,
      expect.objectContaining({
        code: "infeasible",
        reasons: [{ what: "calls", requested: 11, available: 10, limit: 10 }],
      }),
    ]);
  });

  it("waits until another child ends, and is refused when its time is over before", async () => {
    const parent = await world.openRun({ budget: { calls: 10 } });
    const first = await reserved(parent, { calls: 8, wait_ms: 0 });
    const late = await reserve(parent, { calls: 5, wait_ms: 300 });
    expect([late.status, errorOf(late)["waited_ms"]]).toEqual([409, expect.toSatisfy((ms) => Number(ms) >= 300)]);
    const second = reserve(parent, { calls: 5, wait_ms: 60_000 });
    await someoneWaits(parent);
    await close(parent, first);
    expect((await second).status).toBe(201);
    expect((await documentOf(parent)).budget.calls).toMatchObject({ reserved: 5, remaining: 5 });
  });

  it("is refused as ever, with 402, without wait_ms", async () => {
    const parent = await world.openRun({ budget: { calls: 3 } });
    await reserved(parent, { calls: 3 });
    const answer = await reserve(parent, { calls: 1 });
    expect([answer.status, errorOf(answer).code]).toEqual([402, "budget_exhausted"]);
  });

  it.each([-1, 60_001, 1.5, "5"])("takes no wait_ms of %j", async (wait_ms) => {
    const parent = await world.openRun({ budget: { calls: 3 } });
    expect(errorOf(await reserve(parent, { wait_ms }))).toMatchObject({ code: "invalid_request", param: "wait_ms" });
  });

  it("is for child runs only", async () => {
    const answer = await world.sendAsOperator("/runs", { json: { wait_ms: 0 } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "wait_ms"]);
  });

  it("is refused when its parent ends while it waits", async () => {
    const parent = await world.openRun({ budget: { calls: 4 } });
    await reserved(parent, { calls: 3, wait_ms: 0 });
    const asked = reserve(parent, { calls: 2, wait_ms: 60_000 });
    await someoneWaits(parent);
    await world.sendAsOperator(`/runs/${parent.id}`, { method: "DELETE" });
    expect((await asked).status).toBe(401);
  });
});
