/** `POST /runs/:id/turn`: an operator makes a run go on that would not by itself. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { turnDocument, type TurnDocument } from "../../src/contract/operator/turn.ts";
import { crash, openUnwatched } from "../support/objects-direct.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { openRun, prompts, type TestRun } from "../support/objects-run.ts";

function post(run: Pick<TestRun, "id">): Promise<Response> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  return exports.default.fetch(new Request(`http://gateway.test/runs/${run.id}/turn`, { method: "POST", headers }));
}

async function turned(run: TestRun): Promise<TurnDocument> {
  const response = await post(run);
  expect(response.status).toBe(200);
  return turnDocument().parse(await response.json());
}

describe("a turn at once", () => {
  it("executes a batch whose executor and alarm are lost", async () => {
    const run = await openRun({ max_parallel: 4 });
    await openUnwatched(run, prompts(6), "up/echo");
    // As if the platform had lost it: nothing else starts the batch.
    await runInDurableObject(run.object, (_, { storage }) => storage.deleteAlarm());
    const { before, after, finished } = await turned(run);
    expect([before.open_groups, before.alarm_at, finished]).toEqual([1, null, true]);
    expect(after.alarm_at === null && after.open_groups > 0).toBe(false);
    await expect.poll(async () => (await run.document()).stats.pending_queries, { timeout: 10_000 }).toBe(0);
    expect((await run.budget()).calls.spent).toBe(6);
  });

  it("says what it did: the events that it has added to the log, by type", async () => {
    const run = await openRun();
    await run.query({ prompt: "one", model: "up/echo" });
    const quiet = await turned(run);
    expect(quiet).toMatchObject({ id: run.id, finished: true, before: { status: "active", in_flight: 0 }, events: {} });
    // It expires, and nothing has noticed yet.
    await runInDurableObject(run.object, (_, { storage }) => {
      const settings: Record<string, unknown> = JSON.parse(
        storage.sql.exec<{ more: string }>("SELECT more FROM meta WHERE key = 'schema'").one().more,
      );
      const more = JSON.stringify({ ...settings, expiresAtMs: Date.now() - 1 });
      storage.sql.exec("UPDATE meta SET more = ? WHERE key = 'schema'", more);
    });
    await crash(run.object);
    const { after, events, events_after } = await turned(run);
    expect([after.status, events]).toEqual(["expired", { run_closed: 1 }]);
    expect(events_after).toBeGreaterThan(0);
  });

  it("is the operator's only, and of a run that exists", async () => {
    const run = await openRun();
    expect((await run.post(`/runs/${run.id}/turn`, {})).status).toBe(403);
    expect((await post({ id: `${run.id.slice(0, -4)}0000` })).status).toBe(404);
  });
});
