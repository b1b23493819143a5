/** The largest batch, at its edges: opened, read at its end, stopped. That all of it runs is measured in bench/memory.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ITEMS_PER_BATCH_MAX } from "../../src/limits.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const PROMPTS = Array.from({ length: ITEMS_PER_BATCH_MAX }, (_, index) => String(index));
const LAST = ITEMS_PER_BATCH_MAX - 1;

/** Opens the largest batch, all of whose calls wait at a latch. Its path. */
async function openLargest(run: RunAccess, headers: Record<string, string> = {}): Promise<string> {
  const json = { prompts: PROMPTS, model: "up-1/latch/largest" };
  const accepted = await run.send("/batch", { json, headers: { prefer: "respond-async", ...headers } });
  expect(accepted.status).toBe(202);
  expect(accepted.json).toMatchObject({ status: "running", count: ITEMS_PER_BATCH_MAX });
  return accepted.headers.get("location") ?? "";
}

describe("a batch of the largest size", () => {
  it("is refused with one call more, which nothing of is stored or sent", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const before = await documentOf(run);
    const error = errorOf(await run.send("/batch", { json: { prompts: [...PROMPTS, "one more"] } }));
    expect(error).toMatchObject({ code: "invalid_request", param: "prompts" });
    expect(await documentOf(run)).toEqual(before);
  });

  it(
    "is one group under its key, whose last slot can be read and cancelled, and which ends when it is cancelled",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ max_parallel: 4 });
      const key = { "idempotency-key": "largest" };
      const at = await openLargest(run, key);
      expect(await openLargest(run, key)).toBe(at);
      const tail = await run.send(`${at}/results?after=${LAST - 2}&limit=10`);
      expect(tail.json).toMatchObject({
        data: [
          { index: LAST - 1, status: "queued" },
          { index: LAST, status: "queued" },
        ],
        has_more: false,
      });
      expect((await run.send(`${at}/slots/${LAST}`, { method: "DELETE" })).json).toMatchObject({
        counts: { cancelled: 1 },
      });
      expect((await run.send(at, { method: "DELETE" })).json).toMatchObject({
        status: "cancelled",
        counts: { queued: 0, running: 0, cancelled: ITEMS_PER_BATCH_MAX },
      });
      expect(world.upstream.counters.requests).toBeLessThanOrEqual(4);
      expect((await documentOf(run)).stats).toMatchObject({ total_queries: ITEMS_PER_BATCH_MAX, pending_queries: 0 });
    },
  );

  it("that aborts at its first failure answers every slot in order", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ max_parallel: 4 });
    const json = { prompts: PROMPTS, model: "up-1/status/400", on_error: "abort" };
    const group = groupOf(await run.send("/batch", { json }));
    expect(group.status).toBe("failed");
    expect(group.items.map(({ index }) => index)).toEqual(PROMPTS.map(Number));
    expect(group.errors.filter((error) => error?.code === "upstream_error").length).toBeLessThanOrEqual(4);
    expect(group.errors[LAST]?.code).toBe("cancelled");
    expect(group.results).toHaveLength(ITEMS_PER_BATCH_MAX);
  });
});
