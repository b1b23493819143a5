/** `GET /overview`: what the list of runs knows of all of them, without a call to any. */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { expect, it } from "vitest";
import { directoryOf } from "../../src/objects/address.ts";
import { overviewDocument } from "../../src/contract/operator/overview.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { openRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const headers = { authorization: `Bearer ${ADMIN_KEY}` };

async function overview() {
  const response = await exports.default.fetch("http://gateway.test/overview", { headers });
  expect(response.status).toBe(200);
  return overviewDocument().parse(await response.json());
}

const lookAt = (id: string) => exports.default.fetch(`http://gateway.test/runs/${id}`, { headers });
const callsOf = (id: string): number => Object.values(watched(id).calls).reduce((sum, calls) => sum + calls, 0);

it("has what a run has spent and how its calls failed, once the operator has looked at it, and wakes none", async () => {
  const run = await openRun({ name: "overseen", default_model: "sim/echo", budget: { usd: 1 } });
  const { usage } = await run.query({ prompt: "x" });
  await run.post("/query", { prompt: "y", model: "sim/fail?status=400" });
  // Its object reports at once what the operator's look shows.
  await lookAt(run.id);
  // Runs of earlier files may still work and report: they have other names.
  const own = { name: "overseen", runs: 1, failed: 1, usd: usage.cost };
  await expect.poll(async () => (await overview()).by_name).toContainEqual(own);
  const before = callsOf(run.id);
  const seen = await overview();
  expect(seen.complete).toBe(true);
  expect(seen.by_model).toContainEqual({ model: "sim/echo", usd: usage.cost });
  expect(seen.failures.find(({ code }) => code === "upstream_error")?.calls).toBeGreaterThanOrEqual(1);
  const sum = (entries: readonly { usd: number }[]): number => entries.reduce((total, { usd }) => total + usd, 0);
  expect(sum(seen.hours)).toBeCloseTo(seen.spent_usd, 9);
  // Of a run that an earlier file took off the list, the hours alone know what it has spent.
  for (const parts of [seen.by_name, seen.by_model]) expect(sum(parts)).toBeLessThan(seen.spent_usd + 1e-9);
  expect(callsOf(run.id)).toBe(before);
});

it("keeps what a run has spent today that is taken off the list", async () => {
  const run = await openRun({ name: "taken off", default_model: "sim/echo", budget: { usd: 1 } });
  // More than any other run of this file, so that no report of theirs in between could stand for it.
  const { usage } = await run.query({ prompt: "x".repeat(4_000) });
  await lookAt(run.id);
  const listed = expect.objectContaining({ name: "taken off", usd: usage.cost });
  await expect.poll(async () => (await overview()).by_name).toContainEqual(listed);
  const { spent_usd: spent } = await overview();
  const part = env.DIRECTORY.get(directoryOf(env, { id: run.id, holder: null }).id);
  await runInDurableObject(part, (directory) => directory.forget(run.id));
  const after = await overview();
  expect(after.by_name).not.toContainEqual(expect.objectContaining({ name: "taken off" }));
  // Runs of earlier files may have reported more meanwhile: nothing takes away what was spent.
  expect(after.spent_usd).toBeGreaterThan(spent - usage.cost / 2);
});

it("counts a run whose row an earlier version has written from its next report on", async () => {
  const run = await openRun({ name: "from earlier", default_model: "sim/echo" });
  const part = env.DIRECTORY.get(directoryOf(env, { id: run.id, holder: null }).id);
  await runInDurableObject(part, (_, { storage }) => {
    storage.sql.exec(
      `UPDATE run SET body = json_remove(body, '$.history', '$.last_call_at', '$.children', '$.own_spent_usd')
        WHERE id = ?`,
      run.id,
    );
  });
  const { usage } = await run.query({ prompt: "x" });
  await lookAt(run.id);
  const own = expect.objectContaining({ name: "from earlier", usd: usage.cost });
  await expect.poll(async () => (await overview()).by_name).toContainEqual(own);
});

it("refuses a time that it does not understand, and any credential but the operator's", async () => {
  const run = await openRun();
  const refused = await exports.default.fetch("http://gateway.test/overview?since=yesterday", { headers });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("since")]);
  const byRun = await run.send("GET", "/overview");
  expect(byRun.status).toBe(403);
});

it("the document of a run says when its last call ended, which calls failed, and what of its spending is its own", async () => {
  const run = await openRun({ default_model: "sim/echo", budget: { usd: 1 } });
  const document = async () => (await lookAt(run.id)).json<Record<string, unknown>>();
  expect(await document()).toMatchObject({ last_call_at: null, own_spent_usd: 0, children: { opened: 0, open: 0 } });
  const { usage } = await run.query({ prompt: "x" });
  // A call that its upstream refuses, and one that ends without an attempt: a budget of calls is used up.
  const tight = await openRun({ default_model: "sim/fail?status=400", budget: { calls: 1 } });
  await tight.post("/batch", { prompts: ["a", "b"], concurrency: 1 });
  const failures = async () => (await lookAt(tight.id)).json<{ metrics: { failures: unknown } }>();
  expect((await failures()).metrics.failures).toEqual({ upstream_error: 1, budget_exhausted: 1 });
  const seen = await document();
  expect(seen).toMatchObject({ own_spent_usd: usage.cost, in_flight: 0 });
  expect(Date.parse(String(seen["last_call_at"]))).toBeGreaterThan(Date.now() - 60_000);
});
