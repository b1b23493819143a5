/** The log of a run: every promised event with its fields, numbered without gaps, and money that adds up from it alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, logOf, numbered, openGroup } from "./following.ts";
import { EVENT_TYPES, ownLine, type OwnLine } from "./log-lines.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import type { UpstreamCall } from "../support/upstream.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let tools: ToolServer;
/** The requests that the provider got. */
const sent: string[] = [];
beforeAll(async () => {
  tools = await startToolServer();
  // A provider that bills a dollar for what may cost far less.
  const bill = ({ prompt, body }: UpstreamCall) => {
    sent.push(JSON.stringify(body));
    return prompt.includes("dear") ? { costUsd: 1 } : {};
  };
  world = await startWorld(bill, { TOOL_HOSTS: tools.host });
});
beforeEach(() => {
  sent.length = 0;
  world.upstream.forget();
});
afterAll(async () => {
  await world.stop();
  await tools.stop();
});

/** The log, each line in its promised form. */
async function ownLog(run: RunAccess): Promise<OwnLine[]> {
  const lines = await logOf(run);
  expect(lines.map(({ seq }) => seq)).toEqual(numbered(lines.length));
  return lines.map((line) => ownLine.parse(line));
}

type Type = OwnLine["event_type"];
type LineOf<T extends Type> = Extract<OwnLine, { event_type: T }>;

function only<T extends Type>(lines: OwnLine[], type: T): LineOf<T>[] {
  const has = (line: OwnLine): line is LineOf<T> => line.event_type === type;
  return lines.filter(has);
}

const round = (usd: number) => Math.round(usd * 1e9) / 1e9;

describe("GET /runs/:id/log", () => {
  it(
    "records a run's whole life in lines of the documented form, with every event type",
    { tags: ["slow"] },
    async () => {
      const registered = [{ name: "echo", url: `http://${tools.host}/echo` }];
      const asked = {
        name: "told",
        default_model: world.modelAside(),
        budget: { usd: 3, calls: 16 },
        tools: registered,
      };
      const run = await world.openRun(asked);
      const { id: childId } = z
        .looseObject({ id: z.string() })
        .parse((await run.send("/runs", { json: childBody })).json);
      await run.send(`/runs/${childId}/close`, { method: "POST" });
      const prompts = [
        "good",
        "{{status/400}} rejected",
        "{{status/503/first/1}} transient",
        "{{fault/reset/first/1}} unknown",
        "{{status/429/retry-after/1/first/1}} throttled",
      ];
      const group = groupOf(await run.send("/batch", { json: { prompts } }));
      await run.send("/query", { json: { prompt: "dear", max_tokens: 16 } });
      await run.send("/tool_call", { json: { tool_name: "echo" } });
      const chain = [
        { id: "a", prompt: "{{status/400}} no" },
        { id: "b", prompt: "{{a.output}}" },
      ];
      await run.send("/dag", { json: { tasks: chain } });
      const { at } = await openGroup(run, { prompts: ["{{fault/hang}} 1", "{{fault/hang}} 2", "3"], concurrency: 2 });
      await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
      await run.send(at, { method: "DELETE" });
      await run.send("/batch", { json: { prompts: Array.from({ length: 12 }, () => "spent") } });
      await run.send(`/runs/${run.id}/close`, { method: "POST" });

      const lines = await ownLog(run);
      const types = new Set(lines.map(({ event_type }) => event_type));
      expect([...types].toSorted()).toEqual(EVENT_TYPES.toSorted());
      expect(lines[0]).toMatchObject({ event_type: "run_opened", name: "told", limits: { usd: 3, calls: 16 } });
      expect(lines.at(-1)).toMatchObject({ event_type: "run_closed", status: "closed" });
      expect(lines.map(({ ts }) => ts)).toEqual(lines.map(({ ts }) => ts).toSorted());
      for (const line of lines) expect(line).toMatchObject({ run_id: run.id, parent_run_id: null, depth: 0 });
      const own = only(lines, "attempt_ended").filter((line) => line.parallel_group_id === group.id);
      expect(own.map(({ index, outcome }) => `${index} ${outcome}`).toSorted()).toEqual([
        "0 success",
        "1 rejected",
        "2 success",
        "2 transient",
        "3 success",
        "3 unknown",
        "4 rate_limited",
        "4 success",
      ]);
      await expectMoneyAddsUp(run, lines);
    },
  );

  const childBody = { budget: { usd: 0.1, calls: 1 } };

  async function expectMoneyAddsUp(run: RunAccess, lines: OwnLine[]): Promise<void> {
    const charged = only(lines, "attempt_ended").map((line) => line.charged);
    const children = only(lines, "child_closed").map((line) => line.spent);
    const sum = (pick: (amount: { usd: number; calls: number }) => number) =>
      [...charged, ...children].reduce((total, amount) => total + pick(amount), 0);
    const { budget } = await documentOf(run);
    expect(round(sum(({ usd }) => usd))).toBe(round(budget.usd.spent));
    expect(sum(({ calls }) => calls)).toBe(budget.calls.spent);
  }

  it("names the group of a batch on each of its lines, and each slot by its index", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["a", "b", "c"] } }));
    const lines = (await ownLog(run)).slice(1);
    expect(new Set(lines.map((line) => line.parallel_group_id))).toEqual(new Set([group.id]));
    expect(lines[0]).toMatchObject({ event_type: "group_started", count: 3, effective_parallel: 3 });
    expect(lines.at(-1)).toMatchObject({ event_type: "group_completed", count: 3, status: "completed", completed: 3 });
    for (const type of ["attempt_started", "attempt_ended", "slot_completed"] as const) {
      expect(
        only(lines, type)
          .map(({ index, call_id }) => `${index} ${call_id}`)
          .toSorted(),
      ).toEqual(["0 null", "1 null", "2 null"]);
    }
    expect(only(lines, "group_completed")[0]?.cost).toBe(group.usage.cost);
  });

  it(
    "names each call of a batch or a graph by the id that its client gave it, and others by none",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-1" });
      const items = [
        { id: "reader", prompt: "a" },
        { id: 'the "skeptic"', prompt: "{{status/503/first/1}} b" },
        { prompt: "c" },
      ];
      await run.send("/batch", { json: { items } });
      await run.send("/query", { json: { prompt: "alone" } });
      const tasks = [
        { id: "list", prompt: '["x", "y"]' },
        { id: "each", foreach: "{{list.output.json}}", max_items: 3, prompt: "{{item}}" },
        { id: "never", prompt: "z", run_if: { task: "list", equals: "no" } },
      ];
      await run.send("/dag", { json: { tasks } });
      const lines = await ownLog(run);
      const named = (
        type: "attempt_started" | "attempt_ended" | "retry_scheduled" | "slot_completed" | "slot_skipped",
      ) =>
        only(lines, type)
          .map(({ item_id, index }) => `${index} ${item_id}`)
          .toSorted();
      const batch = ["0 reader", '1 the "skeptic"', "2 undefined"];
      const ended = [...batch, "0 list", "1 each", "2 each", "null undefined"].toSorted();
      expect(named("slot_completed")).toEqual(ended);
      expect(named("attempt_started")).toEqual([...ended, '1 the "skeptic"'].toSorted());
      expect(named("attempt_ended")).toEqual([...ended, '1 the "skeptic"'].toSorted());
      expect(named("retry_scheduled")).toEqual(['1 the "skeptic"']);
      expect(named("slot_skipped")).toEqual(["4 never"]);
      const followed = await run.send(`/runs/${run.id}/close`, { method: "POST" });
      expect(followed.status).toBe(200);
      expect((await run.send(`/runs/${run.id}/events`)).text).toContain('"index":0,"call_id":null,"item_id":"reader"');
    },
  );

  it(
    "has the step of each call that names one, in each of its events, and no upstream request has it",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-1" });
      const at = (step: number, steps?: number) => (steps === undefined ? { step } : { step, steps });
      await run.send("/query", { json: { prompt: "{{status/503/first/1}} lone", ...at(3, 20) } });
      await run.send("/query", { json: { prompt: "open end", ...at(4) } });
      await run.send("/query", { json: { prompt: "keyed", ...at(5, 20) }, headers: { "idempotency-key": "k" } });
      const items = [{ prompt: "a", id: "named", ...at(6) }, { prompt: "b" }, { prompt: "c", ...at(8, 9) }];
      await run.send("/batch", { json: { items, steps: 20 } });
      await run.send("/batch", { json: { prompt: "alike", n: 2, ...at(10, 10) } });
      const tasks = [
        { id: "one", prompt: "d", ...at(11, 12) },
        { id: "two", prompt: "e" },
      ];
      await run.send("/dag", { json: { tasks } });
      const lines = await ownLog(run);
      const stepsIn = (type: "attempt_started" | "attempt_ended" | "slot_completed") =>
        only(lines, type).map(({ step, steps, item_id: id }) =>
          [step, steps ?? null, ...(id === undefined ? [] : [id])].join(" "),
        );
      const batch = ["6 20 named", " ", "8 9"];
      const once = ["3 20", "4 ", "5 20", ...batch, "10 10", "10 10", "11 12 one", "  two"].toSorted();
      expect(stepsIn("slot_completed").toSorted()).toEqual(once);
      for (const type of ["attempt_started", "attempt_ended"] as const)
        expect(stepsIn(type).toSorted()).toEqual([...once, "3 20"].toSorted());
      expect(only(lines, "retry_scheduled")).toMatchObject([{ step: 3, steps: 20 }]);
      expect(sent).toHaveLength(11);
      for (const body of sent) expect(body).not.toMatch(/"steps?"/);
    },
  );

  it("is not told a step above the steps, nor a step of a tool", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const query = await run.send("/query", { json: { prompt: "a", step: 21, steps: 20 } });
    expect([query.status, errorOf(query)]).toMatchObject([400, { code: "invalid_request", param: "step" }]);
    const batch = await run.send("/batch", { json: { items: [{ prompt: "a", step: 4 }], steps: 3 } });
    expect([batch.status, errorOf(batch)]).toMatchObject([400, { param: "items[0].step" }]);
    const graph = await run.send("/dag", { json: { tasks: [{ id: "a", tool: "echo", step: 4 }] } });
    expect([graph.status, errorOf(graph)]).toMatchObject([400, { param: "tasks[0].step" }]);
    expect(sent).toEqual([]);
  });

  it("has a slot's tokens, cost, attempts, model and times as its answer has", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["{{delay/80}} a", "{{status/400}}"] } }));
    const slots = only(await ownLog(run), "slot_completed").toSorted((a, b) => Number(a.index) - Number(b.index));
    for (const [index, slot] of slots.entries()) {
      const { usage, attempts, status } = group.items[index] ?? {};
      expect(slot).toMatchObject({ usage, attempts, status, hasError: group.errors[index] !== null });
      expect(slot.message).toBe(group.errors[index]?.message ?? null);
    }
    const { llm_call_start, llm_call_end } = slots[0]?.timestamps ?? {};
    expect(Date.parse(llm_call_end ?? "") - Date.parse(llm_call_start ?? "")).toBeGreaterThanOrEqual(75);
    expect(slots[1]?.code).toBe("upstream_error");
  });

  it(
    "records a single query without a group, and queries of one coalescing window with theirs",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-1", window_ms: 2_000 });
      await run.send("/query", { json: { prompt: "alone" } });
      const alone = (await ownLog(run)).slice(1);
      expect(alone.map((line) => line.parallel_group_id)).toEqual(alone.map(() => null));
      const ids = only(alone, "slot_completed").map(({ index, call_id }) => [index, typeof call_id]);
      expect(ids).toEqual([[null, "string"]]);

      const other = await world.openRun({ default_model: "up-1", window_ms: 3_000 });
      const prompts = ["{{delay/300}} a", "{{delay/300}} b", "{{delay/300}} c"];
      const replies = await Promise.all(prompts.map((prompt) => other.send("/query", { json: { prompt } })));
      const id = z.looseObject({ parallel_group_id: z.string() }).parse(replies[0]?.json).parallel_group_id;
      await expect.poll(async () => only(await ownLog(other), "group_completed").length).toBe(1);
      const lines = (await ownLog(other)).slice(1);
      expect(new Set(only(lines, "slot_completed").map((line) => line.parallel_group_id))).toEqual(new Set([id]));
      expect(only(lines, "group_started")).toMatchObject([{ parallel_group_id: id }]);
      expect(only(lines, "group_completed")).toMatchObject([{ parallel_group_id: id, count: 3, completed: 3 }]);
    },
  );

  it("continues after the reader's last event number", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["a", "b"] } });
    const all = await logOf(run);
    for (const after of [0, 1, 4, all.length - 1, all.length, 1_000]) {
      expect(await logOf(run, `?after=${after}`)).toEqual(all.slice(after));
    }
  });

  it.each(["after=-1", "after=x", "after=1.5", "since=1"])("refuses ?%s", async (query) => {
    const run = await world.openRun();
    for (const path of ["log", "events"]) {
      const answer = await run.send(`/runs/${run.id}/${path}?${query}`);
      expect([answer.status, errorOf(answer).param]).toEqual([400, query.split("=")[0]]);
    }
  });

  it("can be read with its parent's token, but not with its child's", async () => {
    const run = await world.openRun();
    const opened = z.looseObject({ id: z.string(), token: z.string() });
    const child = opened.parse((await run.send("/runs", { json: {} })).json);
    const seen = await run.send(`/runs/${child.id}/log`);
    expect(JSON.parse(seen.text.split("\n")[0] ?? "")).toMatchObject({ parent_run_id: run.id, depth: 1 });
    expect((await world.send(`/runs/${run.id}/log`, { token: child.token })).status).toBe(404);
    expect((await world.sendAsOperator(`/runs/${child.id}/log`)).text).toBe(seen.text);
  });

  it("of 10,000 slots is complete", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "sim/echo", max_parallel: 64 });
    const { at } = await openGroup(run, { prompts: Array.from({ length: 10_000 }, (_, index) => `${index}`) });
    await endOf(run, at);
    const lines = await ownLog(run);
    expect(lines).toHaveLength(1 + 1 + 3 * 10_000 + 1);
    const ended = only(lines, "slot_completed").map(({ index }) => Number(index));
    expect(ended.toSorted((a, b) => a - b)).toEqual(numbered(10_000, 0));
  });
});

describe("POST /runs/:id/log", () => {
  let run: RunAccess;
  beforeAll(async () => void (run = await world.openRun({ default_model: "up-1" })));

  const append = (json: unknown) => run.send(`/runs/${run.id}/log`, { json });

  it("adds the client's own events, one or many, between the gateway's", async () => {
    const event = {
      event_type: "execution_result",
      step: 3,
      code: "print(1)",
      output: "1\n",
      hasError: false,
      reasoning: null,
      usage: { total_tokens: 7 },
      timestamps: { execution_start: "t0", execution_end: "t1" },
      data: [1, { deep: "ü\n\u2028" }],
    };
    const first = await append(event);
    expect([first.status, first.json]).toEqual([201, { object: "log", appended: 1, seq: 2 }]);
    await run.send("/query", { json: { prompt: "between" } });
    const many = await append([
      { event_type: "final_result" },
      { ...event, parallel_group_id: "pg-1763712000000-abc" },
    ]);
    const lines = await logOf(run);
    expect(many.json).toEqual({ object: "log", appended: 2, seq: lines.length });
    expect(lines.map(({ seq }) => seq)).toEqual(numbered(lines.length));
    expect(lines[1]).toEqual({
      ...{ seq: 2, ts: expect.any(String), run_id: run.id, parent_run_id: null, parallel_group_id: null, depth: 0 },
      ...event,
    });
    expect(lines.at(-2)).toMatchObject({ event_type: "final_result", step: null, parallel_group_id: null });
    expect(lines.at(-1)).toMatchObject({ ...event, parallel_group_id: "pg-1763712000000-abc" });
  });

  it.each<[string, unknown, string | null]>([
    ["without a type", {}, "event_type"],
    ["whose type is a number", { event_type: 1 }, "event_type"],
    ["whose type has capitals", { event_type: "Done" }, "event_type"],
    ["with an unknown field", { event_type: "mine", colour: "red" }, "colour"],
    ["that brings its own number", { event_type: "mine", seq: 1 }, "seq"],
    ["that brings its own time", { event_type: "mine", ts: "2026-01-01T00:00:00.000Z" }, "ts"],
    ["that names another run", { event_type: "mine", run_id: "run_x" }, "run_id"],
    ["whose step is a text", { event_type: "mine", step: "1" }, "step"],
    ["whose code is a number", { event_type: "mine", code: 1 }, "code"],
    ["whose hasError is a text", { event_type: "mine", hasError: "no" }, "hasError"],
    ["whose usage is a list", { event_type: "mine", usage: [] }, "usage"],
    ["whose group is none", { event_type: "mine", parallel_group_id: "mine" }, "parallel_group_id"],
    ["that is wrong among others", [{ event_type: "mine" }, { event_type: "mine", output: 1 }], "[1].output"],
    ["that is no object", [1], "[0]"],
    ["that is too large", { event_type: "mine", output: "x".repeat(131_072) }, null],
    ["that nests too deeply", { event_type: "mine", data: nested(70) }, null],
    ["of 1,001", Array.from({ length: 1_001 }, () => ({ event_type: "mine" })), null],
    ["of the gateway's own names", { event_type: "attempt_ended" }, "event_type"],
  ])("refuses an event %s, names the field, and stores none of its request", async (_, body, param) => {
    const before = await logOf(run);
    const answer = await append(body);
    expect([answer.status, errorOf(answer).param]).toEqual([400, param]);
    expect(await logOf(run)).toEqual(before);
  });

  it("refuses every event name of the gateway", async () => {
    for (const event_type of EVENT_TYPES) expect((await append({ event_type })).status).toBe(400);
  });

  it("is also at /log for the caller's own run", async () => {
    const run = await world.openRun();
    const answer = await run.send("/log", { json: { event_type: "final_result", output: "42" } });
    expect([answer.status, answer.json]).toEqual([201, { object: "log", appended: 1, seq: expect.any(Number) }]);
    expect((await run.send(`/runs/${run.id}/log`)).text).toContain('"output":"42"');
  });

  it("accepts 1,000 events at once, each up to its size limit", async () => {
    const before = (await logOf(run)).length;
    const many = Array.from({ length: 1_000 }, (_, step) => ({ event_type: "mine", step }));
    expect((await append(many)).json).toMatchObject({ appended: 1_000, seq: before + 1_000 });
    const bare = JSON.stringify({ event_type: "mine", output: "" }).length;
    expect((await append({ event_type: "mine", output: "x".repeat(131_072 - bare) })).status).toBe(201);
    expect((await append({ event_type: "mine", output: "x".repeat(131_073 - bare) })).status).toBe(400);
    const lines = await logOf(run, `?after=${before}`);
    expect(lines.slice(0, 1_000).map(({ step }) => step)).toEqual(numbered(1_000, 0));
    expect(lines).toHaveLength(1_001);
  });
});

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}
