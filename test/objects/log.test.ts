/** The run's log as rows and pages: durable when it is emitted, bounded, and no row too large. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { CLIENT_LOG_BYTES_MAX, LOG_PAGE_CHARS_MAX, LOG_ROW_CHARS_MAX } from "../../src/limits.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { crash, evict } from "../support/objects-direct.ts";
import { openAsync } from "../support/objects-group.ts";
import { expectGapless, logOf, ofType } from "../support/objects-log.ts";
import { asOperator, openLatch, openRun, prompts, untilInFlight, type TestRun } from "../support/objects-run.ts";
import { refusalOf } from "../support/objects-tree.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a client's events", () => {
  it("are in the log between the gateway's own, unchanged and in their order", async () => {
    const run = await openRun();
    const { id } = await run.batch({ prompts: ["one"] });
    const events = [
      { event_type: "code_generated", step: 1, code: "print('é漢😀')", parallel_group_id: id },
      { event_type: "execution_result", step: 1, output: "line\nline", hasError: false },
    ];
    const answer = await run.post(`/runs/${run.id}/log`, events);
    expect(answer.status).toBe(201);
    const { seq, appended } = appendedReply.parse(await answer.json());
    expect(appended).toBe(2);
    await run.query({ prompt: "two" });
    const lines = await logOf(run);
    expectGapless(lines);
    expect(lines.filter((line) => line.seq > seq - 2 && line.seq <= seq)).toMatchObject(events);
    expect(lines.find((line) => line.seq === seq)).toMatchObject({ run_id: run.id, parallel_group_id: null, depth: 0 });
  });

  it("are durable when their request is answered: a crash right after it loses none", async () => {
    const run = await openRun();
    const answer = await run.post(`/runs/${run.id}/log`, { event_type: "final_result", output: "42" });
    const { seq } = appendedReply.parse(await answer.json());
    await crash(run.object);
    const lines = await logOf(run);
    expectGapless(lines);
    expect(lines.find((line) => line.seq === seq)).toMatchObject({ event_type: "final_result", output: "42" });
  });

  it("are refused beyond their size limit, to the byte", async () => {
    const run = await openRun();
    const event = { event_type: "note", output: "x".repeat(100) };
    const size = JSON.stringify(event).length;
    await setClientLogBytes(run, CLIENT_LOG_BYTES_MAX - size - 1);
    expect((await run.post(`/runs/${run.id}/log`, event)).status).toBe(201);
    const refused = await refusalOf(await run.post(`/runs/${run.id}/log`, event));
    expect(refused).toMatchObject({ status: 413, code: "payload_too_large" });
    await evict(run.object);
    expect((await run.post(`/runs/${run.id}/log`, event)).status).toBe(413);
    expect(ofType(await logOf(run), "note").length).toBe(1);
    // The limit applies to client events: the gateway still logs its own.
    await run.query({ prompt: "one" });
    expect(ofType(await logOf(run), "slot_completed").length).toBe(1);
  });

  it("that arrive together count together: a turn does not exceed the limit", async () => {
    const run = await openRun({ max_parallel: 4 });
    const json = JSON.stringify({ event_type: "note", output: "x".repeat(100) });
    await setClientLogBytes(run, CLIENT_LOG_BYTES_MAX - 2 * json.length);
    await openAsync(run, { prompts: prompts(4), model: "up/key/busy-log/latch/busy-log" });
    await untilInFlight("busy-log", 4);
    const events = [{ json, parallelGroupId: null }];
    const appended = await Promise.all([1, 2, 3].map(() => run.object.appendLog(events, null)));
    await openLatch("busy-log");
    expect(appended.map((reply) => reply?.ok)).toEqual([true, true, false]);
  });
});

describe("a long log", () => {
  it("reads the same in pages of any size, after any event", async () => {
    const run = await openRun();
    for (let post = 0; post < 4; post++) {
      const events = Array.from({ length: 10 }, (_, at) => ({
        event_type: "note",
        step: at,
        output: "x".repeat(20_000),
      }));
      expect((await run.post(`/runs/${run.id}/log`, events)).status).toBe(201);
    }
    const whole = await logOf(run);
    expectGapless(whole);
    expect(whole.length).toBe(41);
    // A page ends with the event that fills it.
    expect(watched(run.id).calls["logPage"]).toBeGreaterThan(800_000 / (LOG_PAGE_CHARS_MAX + 20_100));
    for (const after of [0, 1, 7, 21, 40, 41, 1_000]) expect(await logOf(run, after)).toEqual(whole.slice(after));
  });

  it("is stored in rows that fit, if one write exceeds a row", async () => {
    const run = await openRun();
    // Characters of three bytes, as many as a client may send in one event, and more events than fit one row.
    const output = "漢".repeat(43_000);
    const events = Array.from({ length: 30 }, (_, step) => ({ event_type: "note", step, output }));
    expect((await run.post(`/runs/${run.id}/log`, events)).status).toBe(201);
    const rows = await logRows(run);
    expect(rows.length).toBeGreaterThan(2);
    for (const { chars, bytes } of rows) {
      expect(chars).toBeLessThanOrEqual(LOG_ROW_CHARS_MAX + rows.length + 30);
      expect(bytes).toBeLessThan(2_000_000);
    }
    await evict(run.object);
    const lines = await logOf(run);
    expectGapless(lines);
    expect(ofType(lines, "note").map((line) => [line["step"], line["output"] === output])).toEqual(
      events.map(({ step }) => [step, true]),
    );
  });

  it("of many slots that end together fits its rows too", { tags: ["slow"], ...MANY_CALLS }, async () => {
    const run = await openRun({ max_parallel: 512 });
    const answer = await run.batch({ prompts: prompts(1_500), model: "up/status/400", max_tokens: 1 });
    expect(answer.status).toBe("failed");
    const lines = await logOf(run);
    expectGapless(lines);
    expect(ofType(lines, "slot_completed").length).toBe(1_500);
    for (const { bytes } of await logRows(run)) expect(bytes).toBeLessThan(2_000_000);
  });
});

describe("the opening of a run", () => {
  const OPENED = { name: "quiet", limits: { usd: 2, calls: null }, max_parallel: 3 };
  const open = (): Promise<TestRun> => openRun({ name: "quiet", budget: { usd: 2 }, max_parallel: 3 });

  it("takes no row of the log until somebody reads it, whatever becomes of the object before", async () => {
    const run = await open();
    const { created_at: createdAt } = await run.document();
    expect(await tablesOf(run)).toEqual(["meta"]);
    await crash(run.object);
    expect(await tablesOf(run)).toEqual(["meta"]);
    const lines = await logOf(run);
    expect(lines).toMatchObject([{ seq: 1, event_type: "run_opened", ...OPENED }]);
    expect(lines[0]?.["ts"]).toBe(createdAt);
    expect(await tablesOf(run)).toEqual(["log", "meta"]);
  });

  it("keeps the limits that it had, if a patch changes them before somebody reads", async () => {
    const run = await open();
    const patched = await asOperator("PATCH", `/runs/${run.id}`, { budget: { usd: 5 }, max_parallel: 9 });
    expect(patched.status).toBe(200);
    await crash(run.object);
    await run.query({ prompt: "one" });
    const lines = await logOf(run);
    expectGapless(lines);
    expect(lines[0]).toMatchObject({ seq: 1, event_type: "run_opened", ...OPENED });
    expect(ofType(lines, "run_opened").length).toBe(1);
  });

  it("comes before a call whose row a crash leaves", async () => {
    const run = await open();
    expect((await run.post("/query", { prompt: "two" }, { headers: { "idempotency-key": "two" } })).status).toBe(200);
    await crash(run.object);
    const lines = await logOf(run);
    expectGapless(lines);
    expect(lines[0]).toMatchObject({ seq: 1, event_type: "run_opened", ...OPENED });
    expect(ofType(lines, "attempt_started").length).toBe(1);
  });
});

/** The tables that a run has made; the platform's own begin with an underscore. */
function tablesOf(run: TestRun): Promise<string[]> {
  const query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_*' ORDER BY name";
  return runInDurableObject(run.object, (_: RunObject, { storage }) =>
    storage.sql
      .exec<{ name: string }>(query)
      .toArray()
      .map(({ name }) => name),
  );
}

const appendedReply = z.object({ object: z.literal("log"), appended: z.number(), seq: z.number() });

/** Sets how much the client has added to a run's log, as if it had. */
async function setClientLogBytes(run: TestRun, bytes: number): Promise<void> {
  await runInDurableObject(run.object, (_: RunObject, { storage }) => {
    storage.sql.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('client_log', ?)", String(bytes));
  });
  await crash(run.object);
}

function logRows(run: TestRun): Promise<{ last: number; chars: number; bytes: number }[]> {
  return runInDurableObject(run.object, (_: RunObject, { storage }) =>
    storage.sql
      .exec<{ last: number; chars: number; bytes: number }>(
        "SELECT last, length(lines) AS chars, length(CAST(lines AS BLOB)) AS bytes FROM log ORDER BY last",
      )
      .toArray(),
  );
}
