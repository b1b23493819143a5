/** `stop_when`: the rest of a batch is not paid for once its client has what it needs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, logOf, openGroup } from "./following.ts";
import { reachedWithinSecond } from "./round-trips.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const WIDTH = 64;
const openOwn = (more: Record<string, unknown> = {}) =>
  world.openRun({ default_model: "up-1", budget: { usd: 50 }, max_parallel: WIDTH, ...more });
const hanging = (count: number) => Array.from({ length: count }, (_, at) => `{{fault/hang}} h${at}`);
/** At the full width to the end, with an abort of what is in flight. */
const FULL = { in_flight: "abort", hurry: true };
const alike = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`);

const stopFields = z.looseObject({
  saved_calls: z.int(),
  aborted_calls: z.int(),
  saved_usd: z.strictObject({
    worst_usd: z.number(),
    likely_usd: z.number(),
    net_usd: z.number(),
    aborted_usd: z.number(),
  }),
  shadow: z.boolean(),
  stopped_at: z.iso.datetime().nullable(),
});

const quote = z.looseObject({ worst_usd: z.number(), likely_usd: z.number() });

const counted = z.looseObject({ counts: z.record(z.string(), z.int()) });

async function stopped(run: RunAccess, json: Record<string, unknown>) {
  const answer = await run.send("/batch", { json });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return { group: groupOf(answer), stop: stopFields.parse(answer.json), counts: counted.parse(answer.json).counts };
}

describe("a quorum of three among 1,000 slots", () => {
  it("makes at most 64 + 3 calls, closes those in flight within a second, and says what it has saved", async () => {
    const run = await openOwn();
    const prompts = ["Yes.", "yes", "**YES**", ...hanging(997)];
    const { group, stop } = await stopped(run, { prompts, max_tokens: 100, stop_when: { quorum: { of: 3 }, ...FULL } });
    const { requests } = world.upstream.counters;
    expect(requests).toBeLessThanOrEqual(WIDTH + 3);
    await reachedWithinSecond(run, () => world.upstream.counters.abandoned, requests - 3);
    expect([group.status, group.results.slice(0, 3)]).toEqual(["completed", prompts.slice(0, 3)]);
    expect(group.errors.slice(3).every((error) => error?.code === "cancelled")).toBe(true);
    expect([stop.saved_calls + stop.aborted_calls, stop.shadow]).toEqual([997, false]);
    const unsent = prompts.filter((_, at) => group.items[at]?.attempts === 0);
    expect(unsent).toHaveLength(stop.saved_calls);
    // To the last digit what a quote says of the calls that were not made.
    const quoted = await run.send("/batch?quote=1", { json: { prompts: unsent, max_tokens: 100 } });
    const { worst_usd, likely_usd } = quote.parse(quoted.json);
    expect(stop.saved_usd).toMatchObject({ worst_usd, likely_usd });
    expect(stop.saved_usd.aborted_usd).toBeGreaterThan(0);
    expect(stop.saved_usd.net_usd).toBeLessThan(likely_usd);
    expect(worst_usd).toBeGreaterThan(likely_usd);
    expect(likely_usd).toBeGreaterThan(0);
    const { budget } = await documentOf(run);
    expect([budget.calls.spent, budget.usd.reserved]).toEqual([requests, 0]);
  });

  it("never decides by errors", async () => {
    const run = await openOwn({ max_parallel: 8 });
    const prompts = Array.from({ length: 40 }, (_, at) => `{{status/400/percent/60}} p${at}`);
    const comparison = { by: "normalized" };
    const { counts, stop } = await stopped(run, {
      prompts,
      stop_when: { quorum: { of: 2, agree: 1, ...comparison } },
    });
    expect([stop.stopped_at, stop.saved_calls, counts["cancelled"]]).toEqual([null, 0, 0]);
    expect(counts["failed"]).toBeGreaterThan(10);
  });
});

describe("a stop", () => {
  it("by n_success keeps the results that there are, in input order", async () => {
    const run = await openOwn({ max_parallel: 4 });
    const { group, stop } = await stopped(run, {
      prompts: [...hanging(2), ...alike(3)],
      stop_when: { n_success: 3, ...FULL },
    });
    expect(group.results.slice(2)).toEqual(alike(3));
    expect([group.status, stop.aborted_calls, stop.saved_calls]).toEqual(["completed", 2, 0]);
  });

  it("lets what is in flight end, charges it exactly, and keeps its answer", async () => {
    const run = await openOwn({ max_parallel: 4 });
    const json = { prompts: alike(8), max_tokens: 500, stop_when: { n_success: 1, hurry: true } };
    const { group, stop, counts } = await stopped(run, json);
    const { requests } = world.upstream.counters;
    expect([stop.aborted_calls, counts["completed"], counts["cancelled"]]).toEqual([0, requests, 8 - requests]);
    expect(stop.saved_usd).toMatchObject({ aborted_usd: 0, net_usd: stop.saved_usd.likely_usd });
    expect((await documentOf(run)).budget.usd.spent).toBeCloseTo(group.usage.cost, 12);
  });

  it("has no more in flight near its end than it may need: each answer that is not needed is not paid for", async () => {
    const run = await openOwn();
    const { counts, stop } = await stopped(run, { prompts: alike(12), stop_when: { quorum: { of: 3, agree: 0.1 } } });
    expect([world.upstream.counters.requests, counts["completed"], stop.saved_calls]).toEqual([3, 3, 9]);
  });

  it("does not wait for a call that is stuck, and starts another one in its place", { tags: ["slow"] }, async () => {
    const run = await openOwn({ max_parallel: 3 });
    const { group, stop } = await stopped(run, {
      prompts: ["a", ...hanging(1), "b", "c"],
      stop_when: { n_success: 3 },
    });
    expect([group.status, stop.aborted_calls]).toEqual(["completed", 1]);
    expect(group.results.filter((_, at) => at !== 1)).toEqual(["a", "b", "c"]);
  });

  it("by a pattern ends with the first answer that matches, and a hostile pattern costs nobody time", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const prompts = [`${"a".repeat(5_000)}!`, "aaa", ...alike(5)];
    const { stop } = await stopped(run, { prompts, stop_when: { regex: "^(a+)+$" } });
    expect([stop.saved_calls, world.upstream.counters.requests]).toEqual([5, 2]);
  });

  it("by a key of the JSON ignores what else the answers say", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const prompts = ["no JSON", '{"vote":"A","why":"x"}', '{"vote":"a","why":"y"}', ...alike(3)];
    const { stop } = await stopped(run, {
      prompts,
      stop_when: { quorum: { of: 2, agree: 1, by: "json_key", key: "vote" } },
    });
    expect(stop.saved_calls).toBe(3);
  });

  it("in shadow mode runs everything and reports what it would have saved", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const { group, counts, stop } = await stopped(run, {
      prompts: alike(5),
      stop_when: { n_success: 2, shadow: true },
    });
    expect([group.status, counts["completed"], group.results]).toEqual(["completed", 5, alike(5)]);
    expect([stop.shadow, stop.saved_calls, stop.aborted_calls]).toEqual([true, 3, 0]);
    expect(stop.saved_usd.worst_usd).toBeGreaterThan(0);
  });

  it("is no failure to error_style throw, but a failed slot is", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const body = { error_style: "throw", stop_when: { n_success: 1 } };
    expect((await stopped(run, { prompts: alike(3), ...body })).stop.saved_calls).toBe(2);
    const failing = { prompts: ["{{status/400}} a", ...alike(3)], ...body };
    expect(errorOf(await run.send("/batch", { json: failing })).code).toBe("upstream_error");
  });

  it("is in every form of the answer, and once more under the same key", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const body = { prompts: alike(4), stop_when: { n_success: 1 } };
    const lines = await run.send("/batch", { json: body, headers: { accept: "application/x-ndjson" } });
    const last: unknown = JSON.parse(lines.text.trim().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ type: "group_completed", status: "completed", saved_calls: 3, aborted_calls: 0 });
    const { at } = await openGroup(run, body);
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed", saved_calls: 3 });
    const keyed = { json: body, headers: { "idempotency-key": "k" } };
    const [first, again] = [await run.send("/batch", keyed), await run.send("/batch", keyed)];
    expect(again.json).toEqual(first.json);
    expect(world.upstream.counters.requests).toBe(3);
    const completed = (await logOf(run)).filter((line) => line.event_type === "group_completed");
    expect(completed.map((line) => line["saved_calls"])).toEqual([3, 3, 3]);
  });
});

describe("stop_when", () => {
  it.each([
    [{}, "stop_when"],
    [{ n_success: 1, regex: "a" }, "stop_when"],
    [{ shadow: true }, "stop_when"],
    [{ n_success: 0 }, "stop_when.n_success"],
    [{ regex: "(?=a)" }, "stop_when.regex"],
    [{ regex: "(" }, "stop_when.regex"],
    [{ n_success: 1, flags: "i" }, "stop_when.flags"],
    [{ quorum: { of: 2, agree: 1.1 } }, "stop_when.quorum.agree"],
    [{ quorum: { of: 2, by: "json_key" } }, "stop_when.quorum.key"],
    [{ quorum: { of: 2, key: "a" } }, "stop_when.quorum.key"],
    [{ n_success: 1, in_flight: "never" }, "stop_when.in_flight"],
    [{ regex: "a", hurry: true }, "stop_when.hurry"],
    [{ judge: { prompt: "" } }, "stop_when.judge.prompt"],
    [{ judge: { prompt: "?", every: 0 } }, "stop_when.judge.every"],
    [{ judge: { prompt: "?" }, flags: "i" }, "stop_when.flags"],
    [{ judge: { prompt: "?" }, n_success: 1 }, "stop_when"],
  ])("%j is refused with the name of the field", async (rule, param) => {
    const run = await openOwn();
    const error = errorOf(await run.send("/batch", { json: { prompts: ["a"], stop_when: rule } }));
    expect([error.code, error.param]).toEqual(["invalid_request", param]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});
