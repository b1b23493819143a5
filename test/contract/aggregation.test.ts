/** `aggregate`: one result from many answers, beside all of them; and the report on a group in its forms. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, openGroup } from "./following.ts";
import { errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const openOwn = (more: Record<string, unknown> = {}) =>
  world.openRun({ default_model: "up-1", budget: { usd: 50 }, ...more });

const answered = z.looseObject({ aggregation: z.looseObject({ strategy: z.string() }) });

async function aggregated(run: RunAccess, json: Record<string, unknown>) {
  const answer = await run.send("/batch", { json });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return { group: groupOf(answer), aggregation: answered.parse(answer.json).aggregation };
}

describe("aggregate", () => {
  it("merge joins texts in input order and keeps every result", async () => {
    const run = await openOwn();
    const prompts = ["{{delay/50}} a", "{{status/400}} b", "c"];
    const { group, aggregation } = await aggregated(run, {
      prompts,
      aggregate: { strategy: "merge", separator: " | " },
    });
    expect(aggregation).toMatchObject({ mode: "concat", output: "{{delay/50}} a | c", merged: 2, left_out: [] });
    expect([group.status, group.results[2]]).toEqual(["partial", "c"]);
  });

  it("merge combines JSON answers and lists their conflicts", async () => {
    const run = await openOwn();
    const prompts = ['{"a":1,"list":["x"]}', 'Here: {"a":2,"list":["x","y"]}', "none"];
    const { aggregation } = await aggregated(run, { prompts, aggregate: { strategy: "merge", mode: "json" } });
    expect(aggregation).toMatchObject({
      output: { a: 1, list: ["x", "y"] },
      conflicts: [{ path: "a", kept: 1, kept_from: 0, other: 2, other_from: 1 }],
      left_out: [2],
    });
  });

  it("vote names the winner with its whole answer", async () => {
    const run = await openOwn();
    const prompts = ["no", "Yes.", "yes", "**YES**", "{{status/400}} no", "{{status/400}} no", "{{status/400}} no"];
    const { aggregation } = await aggregated(run, { prompts, aggregate: { strategy: "vote" } });
    expect(aggregation).toMatchObject({ decided: true, winner: "Yes.", winner_index: 1, votes: 4, failed: 3 });
  });

  it("vote weighs roles by their ids, and decides nothing in a tie", async () => {
    const run = await openOwn();
    const items = [
      { id: "architect", prompt: '{"choice":"A"}' },
      { id: "one", prompt: '{"choice":"B"}' },
      { id: "two", prompt: '{"choice":"B"}' },
    ];
    const rule = { strategy: "vote", rule: "weighted", by: "json_key", key: "choice" };
    const weighed = await aggregated(run, { items, aggregate: { ...rule, weights: { architect: 3 } } });
    expect(weighed.aggregation).toMatchObject({ winner: "A", decided: true, agreement: 0.6 });
    const tied = await aggregated(run, { items, aggregate: { ...rule, weights: { architect: 2 } } });
    expect(tied.aggregation).toMatchObject({ winner: null, decided: false, tie: true });
  });

  it("never trusts a group in which calls failed, nor lets failures decide", async () => {
    const run = await openOwn();
    const prompts = Array.from(
      { length: 30 },
      (_, at) => `{{status/400/percent/60}} p${at}\nCONFIDENCE: 1\nEVIDENCE: e`,
    );
    const judged = await aggregated(run, { prompts, aggregate: { strategy: "uncertainty" } });
    expect(["partial", "untrusted"]).toContain(judged.aggregation["verdict"]);
    expect(judged.aggregation["signals"]).toContain("teammate_failures");
    const voted = await aggregated(run, { prompts, aggregate: { strategy: "vote", rule: "unanimous" } });
    expect(voted.aggregation).toMatchObject({ decided: false, winner: null });
  });

  it("counts neither the cancelled slots of an early stop as members nor their absence as failures", async () => {
    const run = await openOwn({ max_parallel: 1 });
    const prompts = ["a", "A", "b", "b", "b", "b"];
    const body = { prompts, stop_when: { n_success: 2 }, aggregate: { strategy: "vote", rule: "unanimous" } };
    const { aggregation } = await aggregated(run, body);
    expect(aggregation).toMatchObject({ decided: true, winner: "a", votes: 2, failed: 0 });
  });

  it("is in every form of the answer, and once more under the same key", async () => {
    const run = await openOwn();
    const body = { prompts: ["a", "a", "b"], aggregate: { strategy: "vote" } };
    const expected = { strategy: "vote", winner: "a", decided: true };
    const lines = await run.send("/batch", { json: body, headers: { accept: "application/x-ndjson" } });
    expect(JSON.parse(lines.text.trim().split("\n").at(-1) ?? "")).toMatchObject({ aggregation: expected });
    const { at } = await openGroup(run, body);
    expect((await endOf(run, at)).json).toMatchObject({ aggregation: expected });
    const keyed = { json: body, headers: { "idempotency-key": "k" } };
    const [first, again] = [await run.send("/batch", keyed), await run.send("/batch", keyed)];
    expect([first.json, again.json]).toEqual([again.json, first.json]);
    expect(first.json).toMatchObject({ aggregation: expected });
    expect((await run.send("/batch", { json: { ...body, prompts: [] } })).json).toMatchObject({
      aggregation: { decided: false, winner: null, votes: 0 },
    });
  });

  it.each([
    [{ strategy: "judge" }, "aggregate.rubric"],
    [{ strategy: "escalate" }, "aggregate.strategy"],
    [{ strategy: "merge", mode: "llm", max_chars: 1_999 }, "aggregate.max_chars"],
    [{ strategy: "merge", mode: "json", separator: "" }, "aggregate.separator"],
    [{ strategy: "merge", rule: "majority" }, "aggregate.rule"],
    [{ strategy: "vote", rule: "quorum" }, "aggregate.of"],
    [{ strategy: "vote", of: 2 }, "aggregate.of"],
    [{ strategy: "vote", agree: 0.5 }, "aggregate.agree"],
    [{ strategy: "vote", weights: { a: 1 } }, "aggregate.weights"],
    [{ strategy: "vote", by: "json_key" }, "aggregate.key"],
    [{ strategy: "vote", escalate: { max_tokens: 5 } }, "aggregate.escalate.model"],
    [{ strategy: "vote", rule: "weighted", escalate: {} }, "aggregate.escalate.model"],
    [{ strategy: "uncertainty", weights: { intra: { failed: 1.1 } } }, "aggregate.weights.intra.failed"],
  ])("%j is refused with the name of the field", async (aggregate, param) => {
    const run = await openOwn();
    const error = errorOf(await run.send("/batch", { json: { prompts: ["a"], aggregate } }));
    expect([error.code, error.param]).toEqual(["invalid_request", param]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("the report on a group", () => {
  async function reported(query: string, headers: Record<string, string> = {}) {
    const run = await openOwn();
    const items = [
      { id: "glm", prompt: "found it" },
      { id: "codex", prompt: "{{status/400}} x" },
      { id: "glm", prompt: "two" },
    ];
    const { at } = await openGroup(run, { items, aggregate: { strategy: "merge" } });
    await endOf(run, at);
    const answer = await run.send(`${at}/report${query}`, { headers });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return { at, answer };
  }

  it("as JSON has the tables of agents and failures, the metrics, and what was aggregated", async () => {
    const { at, answer } = await reported("", { accept: "application/json" });
    expect(answer.json).toMatchObject({
      object: "report",
      status: "partial",
      agents: [
        {
          agent: "glm",
          status: "COMPLETE",
          output_location: `${at}/results?after=-1&limit=1`,
          key_findings: "found it",
        },
        {
          agent: "codex",
          status: "FAILED",
          outcome: "NONRETRYABLE_FAILURE",
          retry_recommended: false,
          output_location: null,
          key_findings: null,
        },
        { agent: "glm", status: "COMPLETE", outcome: "SUCCESS" },
      ],
      outcome: "PARTIAL_SUCCESS",
      retry_recommended: false,
      failed: [{ agent: "codex", error: { code: "upstream_error" }, action: "Skip" }],
      metrics: { agents: 3, completed: 2, peak_concurrency: expect.any(Number), wall_ms: expect.any(Number) },
      aggregation: { strategy: "merge", output: "found it\n\ntwo" },
    });
    expect((await reported("?format=json")).answer.headers.get("content-type")).toContain("application/json");
  });

  it("for a coordinator has a status and a result for each task, and what its monitor shows", async () => {
    const { answer } = await reported("?format=coordinator");
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(answer.json).toMatchObject({
      format: "coordinator",
      tasks: [
        {
          status: { task_id: "glm", status: "completed", started_at: time, completed_at: time },
          result: { task_id: "glm", success: true, output: "found it", error: null, duration: expect.any(Number) },
        },
        { status: { task_id: "codex", status: "error" }, result: { success: false, output: null } },
        { status: { status: "completed" } },
      ],
      visibility: { status: "error", progress: 1, last_output: "two" },
    });
  });

  it("for a swarm has a result for each agent, also for those that share an id", async () => {
    const { answer } = await reported("?format=swarm");
    expect(answer.json).toMatchObject({
      success: false,
      agentResults: {
        glm: { status: "completed", output: "found it", error: null },
        codex: { status: "failed", output: null },
        "glm#2": { status: "completed", output: "two" },
      },
      totalDuration: expect.any(Number),
      failedAgents: ["codex"],
      successfulAgents: ["glm", "glm#2"],
    });
  });

  it("of a group that runs shows how far it is", async () => {
    const run = await openOwn({ max_parallel: 2 });
    const { at } = await openGroup(run, { prompts: ["a", "{{latch/report}} b", "{{latch/report}} c", "d"] });
    const view = async () => (await run.send(`${at}/report?format=coordinator`)).json;
    await expect.poll(view).toMatchObject({
      visibility: { status: "active", progress: 0.25, last_output: "a" },
      tasks: [{ result: { success: true } }, { status: { status: "running" }, result: null }, {}, { result: null }],
    });
    expect((await run.send(`${at}/report?format=swarm`)).json).toMatchObject({ success: false, failedAgents: [] });
    world.upstream.open("report");
    await endOf(run, at);
  });

  it("in another form is refused with the name of the parameter", async () => {
    const run = await openOwn();
    const { at } = await openGroup(run, { prompts: ["a"] });
    expect(errorOf(await run.send(`${at}/report?format=xml`)).param).toBe("format");
  });
});
