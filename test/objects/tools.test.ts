/** Permits of tool calls where Workers are lost and objects restart, and runs that are older than tools. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import type { AcquireToolReply } from "../../src/objects/methods/calls.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, evict } from "../support/objects-direct.ts";
import { asOperator, openRun, type TestRun } from "../support/objects-run.ts";

const TOOLS = [{ name: "search", url: "https://tools.example.com/search" }];

const named = (callId: string) => ({ callId, tool: "search", waitedMs: 0 });
const openNarrow = (): Promise<TestRun> => openRun({ max_parallel: 1, tools: TOOLS });
const report = { tool: "search", reason: null, status: 200, latencyMs: 3, bytes: 4, attempts: 1 };

const line = z.looseObject({ ok: z.boolean(), code: z.string().nullable(), latency_ms: z.number() });

/** The run's log lines of tool calls. */
async function linesOf({ id }: TestRun) {
  const log = await asOperator("GET", `/runs/${id}/log`);
  const text = new TextDecoder().decode(await log.arrayBuffer());
  const lines = text.split("\n").filter((json) => json.includes('"tool_called"'));
  return lines.map((json) => {
    const { ok, code, latency_ms: latencyMs } = line.parse(JSON.parse(json));
    return { ok, code, latencyMs };
  });
}

/** The decision on a call whose Worker repeats its request while it waits. */
async function acquired(run: TestRun, callId: string): Promise<AcquireToolReply> {
  for (;;) {
    const reply: AcquireToolReply = await run.object.acquireTool(named(callId));
    if (reply.ok !== "wait") return reply;
  }
}

/** Whether the call has been decided by now. */
async function isDecided(call: PromiseLike<unknown>): Promise<boolean> {
  const later = new Promise<string>((resolve) => setTimeout(() => resolve("later"), 50));
  return (await Promise.race([call, later])) !== "later";
}

describe("a permit", () => {
  it("whose Worker is lost passes to the next call after its lease, and its call is reported as lost", async () => {
    const run = await openNarrow();
    expect(await run.object.acquireTool(named("lost"))).toMatchObject({ ok: true, tool: { name: "search" } });
    const next = acquired(run, "next");
    expect(await isDecided(next)).toBe(false);
    skipTime(LEASE_TTL_MS);
    expect(await next).toMatchObject({ ok: true });
    expect(await linesOf(run)).toEqual([{ ok: false, code: "internal", latencyMs: expect.closeTo(LEASE_TTL_MS, -4) }]);
    // Its Worker was only slow: its report is refused, because the call was already reported.
    expect(await run.object.heartbeatTool(named("lost"))).toBe(false);
    await run.object.endTool("lost", report);
    expect(await linesOf(run)).toHaveLength(1);
    await run.object.endTool("next", report);
    expect(await linesOf(run)).toMatchObject([{ ok: false }, { ok: true, code: null, latencyMs: 3 }]);
  });

  it("that a restart of the run object lost is restored by the next heartbeat", async () => {
    const run = await openNarrow();
    await run.object.acquireTool(named("first"));
    await crash(run.object);
    expect(await run.object.heartbeatTool(named("first"))).toBe(true);
    const next = acquired(run, "next");
    expect(await isDecided(next)).toBe(false);
    await run.object.endTool("first", report);
    expect(await next).toMatchObject({ ok: true });
    expect(await linesOf(run)).toMatchObject([{ ok: true }]);
  });

  it("that is requested twice, because a reply was lost, counts once", async () => {
    const run = await openRun({ max_parallel: 2, tools: TOOLS });
    await run.object.acquireTool(named("once"));
    await run.object.acquireTool(named("once"));
    expect(await run.object.acquireTool(named("other"))).toMatchObject({ ok: true });
  });

  it("of a lost Worker delays the end of a closed run until its lease expires, and no longer", async () => {
    const run = await openNarrow();
    await run.object.acquireTool(named("lost"));
    await run.object.end("closed");
    expect(await run.object.logPage(0, null)).toMatchObject({ final: false });
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    expect(await run.object.logPage(0, null)).toMatchObject({ final: true });
    expect(await linesOf(run)).toMatchObject([{ ok: false, code: "internal" }]);
  });

  it("is refused to waiting calls when the run ends", async () => {
    const run = await openNarrow();
    await run.object.acquireTool(named("first"));
    const next = acquired(run, "next");
    expect(await isDecided(next)).toBe(false);
    await run.object.end("closed");
    expect(await next).toMatchObject({ ok: false, reason: { reason: "invalid_api_key" } });
  });

  it("of a cancelled run is revoked at once, also for a Worker from before a restart", async () => {
    const run = await openNarrow();
    await run.object.acquireTool(named("first"));
    await run.object.end("cancelled");
    expect(await run.object.logPage(0, null)).toMatchObject({ final: true });
    await evict(run.object);
    expect(await run.object.heartbeatTool(named("first"))).toBe(false);
    await run.object.endTool("first", report);
    expect(await linesOf(run)).toMatchObject([{ ok: false, code: "cancelled" }]);
  });
});

it("a run that was stored before tools existed has none, and works", async () => {
  const run = await openNarrow();
  await runInDurableObject<RunObject, void>(run.object, (_, state) => {
    state.storage.sql.exec("UPDATE meta SET more = json_remove(more, '$.tools') WHERE key = 'schema'");
  });
  await evict(run.object);
  expect(await run.document()).toMatchObject({ status: "active", tools: [] });
  expect((await run.post("/tool_call", { tool_name: "search" })).status).toBe(404);
  const child = await run.openChild();
  expect(await child.document()).toMatchObject({ tools: [] });
});
