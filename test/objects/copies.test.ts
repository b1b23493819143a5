/** A batch of one call, many times: one row, whatever happens to the object; and one that nobody pays for, which leaves none. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { ITEMS_PER_BATCH_MAX, UNPAID_CALLS_MAX } from "../../src/limits.ts";
import { crash } from "../support/objects-direct.ts";
import { late } from "../support/objects-paces.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";
import { expectWhole, openLatch, openRun, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";

watchObjects();

/** Rows of a table of a run; 0 = it has no such table. */
function rowsOf(run: TestRun, table: string): Promise<number> {
  return runInDurableObject(run.object, (_: RunObject, { storage: { sql } }) => {
    const exists = sql.exec("SELECT 1 FROM sqlite_master WHERE name = ?", table).toArray().length > 0;
    return exists ? Number(sql.exec(`SELECT count(*) AS n FROM ${table}`).one()["n"]) : 0;
  });
}

const ASYNC = { prefer: "respond-async" };
const accepted = z.looseObject({ id: z.string() });
const group = z.looseObject({ status: z.string(), counts: z.record(z.string(), z.number()) });

describe("copies of one call", () => {
  it("are one row, and all of them are sent, also by the next instance of their object", async () => {
    const run = await openRun({ max_parallel: 10 });
    const model = late("up/key/copies/latch/copies");
    const batch = run.batch({ prompt: "same", n: 100, model });
    await untilInFlight("copies", 10);
    expect(await rowsOf(run, "page")).toBe(1);
    const crashed = crash(run.object);
    await openLatch("copies");
    await crashed;
    expectWhole(await batch, Array<string>(100).fill("same"));
    // Attempts that the crash has lost may have been made once more.
    expect((await upstreamStats("copies")).requests).toBeLessThanOrEqual(110);
  });

  it("as many as there may be, open and stop with a handful of rows", async () => {
    const run = await openRun({ max_parallel: 2 });
    const written = async () => (await run.object.rowsWritten()).all;
    const before = await written();
    const body = { prompt: "same", n: ITEMS_PER_BATCH_MAX, model: "up/latch/never" };
    const answer = await run.post("/batch", body, { headers: ASYNC });
    const { id } = accepted.parse(await answer.json());
    const stopped = group.parse(await run.send("DELETE", `/groups/${id}`).then((response) => response.json()));
    expect(stopped).toMatchObject({ status: "cancelled", counts: { cancelled: ITEMS_PER_BATCH_MAX } });
    expect((await written()) - before).toBeLessThan(60);
  });

  it("can be retried: those that were cancelled run in the next group", async () => {
    const run = await openRun({ max_parallel: 1 });
    const body = { prompt: "same", n: 5, model: "up/key/once/latch/once" };
    const answer = await run.post("/batch", body, { headers: ASYNC });
    const { id } = accepted.parse(await answer.json());
    await untilInFlight("once", 1);
    await run.send("DELETE", `/groups/${id}`);
    await openLatch("once");
    const retried = await run.post(`/groups/${id}/retry`, {});
    const whole = z.looseObject({ results: z.array(z.string()) }).parse(await retried.json());
    expect(whole.results).toEqual(Array(5).fill("same"));
  });

  it("are refused with the number that can be paid for, if that is hardly any, and nothing is stored", async () => {
    const run = await openRun({ budget: { calls: 2 } });
    const refused = await run.post("/batch", { prompt: "same", n: 2 + UNPAID_CALLS_MAX + 1 });
    expect(refused.status).toBe(422);
    const { error } = z.looseObject({ error: z.looseObject({ message: z.string() }) }).parse(await refused.json());
    expect(error).toMatchObject({ code: "infeasible", dimension: "calls", limit: 2, needed: 253 });
    expect(error.message).toContain("pays for at most 2 of the 253 calls");
    const listed = await run.post("/batch", { prompts: Array.from({ length: 5_000 }, (_, at) => `${at}`) });
    expect(listed.status).toBe(422);
    expect([await rowsOf(run, "page"), await rowsOf(run, "slot")]).toEqual([0, 0]);
  });

  it.each([
    ["as many as there may be", { prompt: "same", n: ITEMS_PER_BATCH_MAX }],
    ["tiny prompts", { prompts: Array.from({ length: ITEMS_PER_BATCH_MAX }, (_, at) => `${at % 10}`) }],
    ["tiny prompts that must all fit", { prompts: Array<string>(5_000).fill("a"), on_budget: "refuse" }],
  ])("that nobody pays for are refused by one question, and no page of them is sent: %s", async (_, body) => {
    const run = await openRun({ budget: { usd: 0 } });
    const { calls } = watched(run.id);
    const refused = await run.post("/batch", body);
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ error: { code: "infeasible", dimension: "usd" } });
    const sent = ["refusalOfBatch", "stagePages", "openCopies", "openGroup", "dropStaged"];
    expect(sent.map((method) => calls[method] ?? 0)).toEqual([1, 0, 0, 0, 0]);
  });
});
