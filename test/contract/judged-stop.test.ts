/** `stop_when.judge`: a model decides that a batch has enough. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { endOf, logOf, openGroup } from "./following.ts";
import { reachedWithinSecond } from "./round-trips.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

/** What the judge was asked, in order. */
let asked: string[] = [];
/** What the judge answers to a prompt. */
let verdictOn: (prompt: string) => UpstreamAnswer;
const ENOUGH = { text: JSON.stringify({ enough: true, reason: "Three are here." }) };
const NOT_YET = { text: JSON.stringify({ enough: false, reason: "More." }) };
const after = (answers: number) => (prompt: string) => (answersIn(prompt) < answers ? NOT_YET : ENOUGH);
const answersIn = (prompt: string): number => prompt.split("## Answer").length - 1;

function answerOf({ body, prompt }: UpstreamCall): UpstreamAnswer {
  if (body["model"] !== "up-judge") return {};
  asked.push(prompt);
  return verdictOn(prompt);
}

let world: World;
beforeAll(async () => void (world = await startWorld(answerOf)));
beforeEach(() => {
  asked = [];
  verdictOn = after(3);
  world.upstream.forget();
});
afterAll(() => world.stop());

const openOwn = (more: Record<string, unknown> = {}) =>
  world.openRun({ default_model: "up-1", budget: { usd: 50 }, max_parallel: 4, ...more });
const JUDGE = { prompt: "Three answers are enough.", model: "up-judge", max_tokens: 100 };
const hanging = (count: number) => Array.from({ length: count }, (_, at) => `{{fault/hang}} h${at}`);
const alike = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`);

const ended = z.looseObject({
  status: z.string(),
  counts: z.looseObject({ completed: z.int(), failed: z.int(), cancelled: z.int() }),
  saved_calls: z.int(),
  aborted_calls: z.int(),
  stopped_at: z.iso.datetime().nullable(),
  judge_groups: z.array(z.string()),
});

async function batch(run: RunAccess, json: Record<string, unknown>) {
  const answer = await run.send("/batch", { json: { max_tokens: 100, ...json } });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return ended.parse(answer.json);
}

describe("a judge that says there is enough", () => {
  it("stops the batch, closes what is in flight within a second, and is paid for by the run", async () => {
    const run = await openOwn();
    const prompts = [...alike(3), ...hanging(40)];
    const group = await batch(run, { prompts, stop_when: { judge: JUDGE, in_flight: "abort" } });
    expect([group.status, group.counts.completed, group.stopped_at]).toEqual(["completed", 3, expect.any(String)]);
    expect(group.saved_calls + group.aborted_calls).toBe(40);
    const { requests } = world.upstream.counters;
    const inFlight = requests - 3 - asked.length;
    await reachedWithinSecond(run, () => world.upstream.counters.abandoned, inFlight);
    expect(group.judge_groups).toHaveLength(asked.length);
    expect(asked.at(-1)).toContain("# Rule\nThree answers are enough.");
    const { budget } = await documentOf(run);
    expect([budget.calls.spent, budget.usd.reserved]).toEqual([requests, 0]);
    const of = await run.send(`/groups/${group.judge_groups.at(-1)}`);
    expect(of.json).toMatchObject({ status: "completed", results: [expect.stringContaining("Three are here.")] });
  });

  it("stops a batch that nobody waits for, and its answer and log say so", async () => {
    const run = await openOwn();
    const { at } = await openGroup(run, {
      prompts: [...alike(3), ...hanging(9)],
      stop_when: { judge: JUDGE, in_flight: "abort" },
    });
    const group = ended.parse((await endOf(run, at)).json);
    expect(group.saved_calls + group.aborted_calls).toBe(9);
    const lines = await run.send(`${at}/results`, { headers: { accept: "application/x-ndjson" } });
    const last: unknown = JSON.parse(lines.text.trim().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ type: "group_completed", judge_groups: group.judge_groups, shadow: false });
    const events = (await logOf(run)).filter((line) => line.event_type === "group_completed");
    expect(events.map((event) => event["saved_calls"])).toContain(group.saved_calls);
  });

  it("in a run of one call at a time is asked between the calls, once for so many new answers", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const group = await batch(run, { prompts: alike(9), stop_when: { judge: { ...JUDGE, every: 2 } } });
    expect(asked.map(answersIn)).toEqual([2, 4]);
    expect([group.counts.completed, group.saved_calls, group.counts.cancelled]).toEqual([4, 5, 5]);
  });

  it("is not asked once all calls have begun, because they end by themselves and a stop would save nothing", async () => {
    const run = await openOwn();
    const group = await batch(run, {
      prompts: alike(4).map((prompt) => `{{barrier/4/within/30000}} ${prompt}`),
      stop_when: { judge: JUDGE },
    });
    expect([group.counts.completed, group.saved_calls, group.stopped_at, asked.length]).toEqual([4, 0, null, 0]);
  });

  it("stops nothing in shadow mode, and is not asked again", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const group = await batch(run, { prompts: alike(6), stop_when: { judge: JUDGE, shadow: true } });
    expect([group.counts.completed, group.saved_calls > 0, asked.length]).toEqual([6, true, 3]);
  });

  it("judges the results of a graph by the ids of their tasks", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const leaf = (id: string) => ({ id, prompt: `${id} says`, dependencies: ["root"] });
    const tasks = [{ id: "root", prompt: "r" }, ...["a", "b", "c", "d", "e"].map(leaf)];
    const answer = await run.send("/dag", { json: { max_tokens: 50, tasks, stop_when: { judge: JUDGE } } });
    expect(answer.json).toMatchObject({ status: "completed", saved_calls: 2, judge_groups: expect.any(Array) });
    expect(asked.at(-1)).toContain("(a)\na says");
    expect(asked.join("")).not.toContain("(root)");
  });
});

describe("a judge that never says so", () => {
  it("lets the batch run to its end, and is shown no failure", async () => {
    verdictOn = () => NOT_YET;
    const run = await openOwn({ max_parallel: 1 });
    const prompts = ["{{status/400}} bad", ...alike(3)];
    const group = await batch(run, { prompts, stop_when: { judge: JUDGE } });
    expect([group.status, group.saved_calls, group.stopped_at]).toEqual(["partial", 0, null]);
    expect(asked.map(answersIn)).toEqual([1, 2]);
    expect(asked.join("")).not.toContain("bad");
  });

  it.each([
    ["fails", { status: 400 }],
    ["answers something else", { text: "Perhaps." }],
  ])("because it %s", async (_, answer) => {
    verdictOn = () => answer;
    const run = await openOwn({ max_parallel: 1 });
    const group = await batch(run, { prompts: alike(4), stop_when: { judge: { ...JUDGE, every: 2 } } });
    expect([group.status, group.counts.completed, group.saved_calls]).toEqual(["completed", 4, 0]);
  });

  it("because the budget has nothing for it", async () => {
    const run = await openOwn({ max_parallel: 1, budget: { calls: 2 } });
    const group = await batch(run, { prompts: alike(2), stop_when: { judge: { ...JUDGE, every: 2 } } });
    expect([group.counts.completed, asked.length]).toEqual([2, 0]);
  });
});

describe("stop_when.judge", () => {
  it("with an unknown model is refused before anything runs", async () => {
    const run = await openOwn();
    const judge = { ...JUDGE, model: "nobody/knows" };
    const error = errorOf(await run.send("/batch", { json: { prompts: ["a"], stop_when: { judge } } }));
    expect([error.code, world.upstream.counters.requests]).toEqual(["model_not_found", 0]);
  });

  it("does not outlive a batch that is cancelled while its judge waits", async () => {
    verdictOn = () => ({ fault: "hang" });
    const run = await openOwn({ max_parallel: 2 });
    const { at } = await openGroup(run, {
      prompts: ["a", ...hanging(9)],
      stop_when: { judge: JUDGE, in_flight: "abort" },
    });
    await expect.poll(() => asked.length, { interval: 10, timeout: 10_000 }).toBe(1);
    await run.send(at, { method: "DELETE" });
    expect(ended.parse((await endOf(run, at)).json)).toMatchObject({ status: "cancelled", stopped_at: null });
  });
});
