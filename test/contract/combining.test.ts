/** `aggregate` by calls: a judge, a merge by a model, and a model that gets what the votes leave open. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { ASYNC, endOf, logOf, openGroup } from "./following.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

/** Prompts that arrived, by model, in order. */
const asked = new Map<string, string[]>();
const sentTo = (model: string): string[] => asked.get(model) ?? [];
let verdict: object | string = {};

/** Models whose names begin with `up-judge`, `up-merge` and `up-chief` combine; any other repeats its prompt. */
function answerOf({ body, prompt }: UpstreamCall): UpstreamAnswer {
  const model = String(body["model"]);
  asked.set(model, [...sentTo(model), prompt]);
  if (prompt === "fail") return { status: 400 };
  if (model === "up-judge") return { text: typeof verdict === "string" ? verdict : JSON.stringify(verdict) };
  if (model === "up-chief") return { text: "blue" };
  if (model === "up-merge")
    return {
      text: `(${prompt
        .split("\n")
        .filter((line) => /^[(p]/.test(line))
        .join("+")})`,
    };
  return {};
}

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(answerOf);
  run = await world.openRun({ default_model: "up-1", budget: { usd: 5 }, max_parallel: 8 });
});
beforeEach(() => {
  asked.clear();
  verdict = { verdict: "trusted", confidence: 0.9, explanation: "They agree." };
});
afterAll(() => world.stop());

const aggregation = z.looseObject({
  groups: z.array(z.string()),
  usage: z.looseObject({ cost: z.number() }),
  error: z.looseObject({ code: z.string() }).nullable(),
});
const group = z.looseObject({
  id: z.string(),
  status: z.string(),
  aggregation,
  usage: z.looseObject({ cost: z.number() }),
});
const batch = async (json: object, access = run) => {
  const answer = await access.send("/batch", { json: { max_tokens: 100, ...json } });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return group.parse(answer.json);
};
const JUDGE = { strategy: "judge", rubric: "Is it a colour?", model: "up-judge", max_tokens: 100 };

describe("a judge", () => {
  it("gets the rubric and every answer, and says how far they can be trusted", async () => {
    const items = [{ id: "a", prompt: "red" }, { prompt: "green" }];
    const { aggregation: judged, status } = await batch({ items, aggregate: JUDGE });
    expect([status, judged]).toMatchObject([
      "completed",
      {
        strategy: "judge",
        verdict: "trusted",
        confidence: 0.9,
        explanation: "They agree.",
        formula_verdict: "trusted",
        error: null,
      },
    ]);
    expect(judged).toMatchObject({
      uncertainty: { intra: expect.any(Number) as unknown },
      signals: [expect.anything()],
    });
    const [prompt = ""] = sentTo("up-judge");
    for (const shown of ["Is it a colour?", "## Answer 1 (a)\nred", "## Answer 2\ngreen"])
      expect(prompt).toContain(shown);
  });

  it("never trusts a group with failures, and is not asked where nothing completed", async () => {
    const { aggregation: judged } = await batch({ prompts: ["red", "fail"], aggregate: JUDGE });
    expect(judged).toMatchObject({ verdict: "partial", confidence: 0.9 });
    expect(sentTo("up-judge")[0]).toContain("(failed: there is no answer)");
    const { aggregation: none } = await batch({ prompts: ["fail"], aggregate: JUDGE });
    expect(none).toMatchObject({ verdict: "untrusted", confidence: 0.1, groups: [] });
    expect(sentTo("up-judge")).toHaveLength(1);
  });

  it("that gives no judgement is asked again, and then its failure is shown", async () => {
    verdict = "well …";
    const { aggregation: judged, status } = await batch({ prompts: ["red"], aggregate: JUDGE });
    expect([status, judged]).toMatchObject(["completed", { verdict: null, error: { code: "schema_violation" } }]);
    expect(sentTo("up-judge")).toHaveLength(2);
  });

  it("is a group of its own, charged to the run once, whoever reads the answer and however often", async () => {
    const before = (await documentOf(run)).budget.usd?.spent ?? 0;
    const { at } = await openGroup(run, { prompts: ["red"], max_tokens: 100, aggregate: JUDGE });
    const answers = await Promise.all([endOf(run, at), endOf(run, at), endOf(run, at)]);
    const again = await run.send(`${at}/report`, { headers: { accept: "application/json" } });
    const [first] = answers.map((answer) => group.parse(answer.json));
    for (const { json } of answers) expect(group.parse(json).aggregation).toEqual(first?.aggregation);
    expect(z.looseObject({ aggregation }).parse(again.json).aggregation).toEqual(first?.aggregation);
    expect(sentTo("up-judge")).toHaveLength(1);
    const [id = ""] = first?.aggregation.groups ?? [];
    expect(group.omit({ aggregation: true }).parse((await endOf(run, `/groups/${id}`)).json)).toMatchObject({ id });
    const spent = ((await documentOf(run)).budget.usd?.spent ?? 0) - before;
    expect(first?.aggregation.usage.cost).toBeGreaterThan(0);
    expect(spent).toBeCloseTo((first?.usage.cost ?? 0) + (first?.aggregation.usage.cost ?? 0), 9);
  });

  it("is in the last line of a stream, and in the replay under an Idempotency-Key", async () => {
    const json = { prompts: ["red"], max_tokens: 100, aggregate: JUDGE };
    const lines = await run.send("/batch", { json, headers: { accept: "application/x-ndjson" } });
    const last: unknown = JSON.parse(lines.text.trim().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ type: "group_completed", aggregation: { verdict: "trusted" } });
    const named = { "idempotency-key": "judged-1" };
    const [one, two] = [
      await run.send("/batch", { json, headers: named }),
      await run.send("/batch", { json, headers: named }),
    ];
    expect([two.text, sentTo("up-judge").length]).toEqual([one.text, 2]);
  });

  it("that the budget does not cover leaves the answers as they are", async () => {
    const small = await world.openRun({ budget: { calls: 1 }, max_parallel: 1 });
    const judged = await batch({ prompts: ["red"], model: "up-1", aggregate: JUDGE }, small);
    expect(judged).toMatchObject({
      status: "completed",
      aggregation: { verdict: null, error: { code: "budget_exhausted" } },
    });
    expect(sentTo("up-judge")).toEqual([]);
  });

  it("is not asked about a batch that was cancelled", async () => {
    const prompts = ["red", ...Array.from({ length: 20 }, (_, at) => `{{latch/cancelled}} ${at}`)];
    const { at } = await openGroup(run, { prompts, max_tokens: 100, aggregate: JUDGE });
    await run.send(at, { method: "DELETE" });
    world.upstream.open("cancelled");
    const ended = group.parse((await endOf(run, at)).json);
    expect([ended.status, ended.aggregation.groups, sentTo("up-judge")]).toEqual(["cancelled", [], []]);
  });

  it.each([
    ["a model that nobody serves", { ...JUDGE, model: "nobody/x" }, 404, undefined],
    ["no rubric", { strategy: "judge" }, 400, "aggregate.rubric"],
    ["a setting of calls, for a rule without", { strategy: "merge", model: "up-1" }, 400, "aggregate.model"],
  ])("is refused with %s before anything is sent", async (_, aggregate, status, param) => {
    const refused = await run.send("/batch", { json: { prompts: ["red"], aggregate } });
    expect([refused.status, errorOf(refused)?.["param"] ?? undefined, asked.size]).toEqual([status, param, 0]);
  });

  it("gets the results of a graph by the ids of their tasks, once, in every form of the answer", async () => {
    const tasks = [
      { id: "draft", prompt: "grey" },
      { id: "a", prompt: "red", dependencies: ["draft"] },
      { id: "b", prompt: "fail" },
    ];
    const sent = await run.send("/dag", { json: { tasks, max_tokens: 100, aggregate: JUDGE } });
    // A result is missing: what is trusted is so in part.
    expect(sent.json).toMatchObject({ status: "partial", aggregation: { verdict: "partial", error: null } });
    const { id } = z.looseObject({ id: z.string() }).parse(sent.json);
    const { aggregation: first } = z.looseObject({ aggregation }).parse(sent.json);
    const again = z.looseObject({ aggregation }).parse((await endOf(run, `/dag/${id}`)).json);
    const lines = await run.send(`/groups/${id}/results`, { headers: { accept: "application/x-ndjson" } });
    const last = z.looseObject({ aggregation }).parse(JSON.parse(lines.text.trim().split("\n").at(-1) ?? ""));
    const report = z.looseObject({ aggregation }).parse((await run.send(`/groups/${id}/report?format=json`)).json);
    expect([again.aggregation, last.aggregation, report.aggregation]).toEqual([first, first, first]);
    expect(sentTo("up-judge")).toHaveLength(1);
    expect(sentTo("up-judge")[0]).toContain("(a)\nred");
    expect(sentTo("up-judge")[0]).not.toContain("grey");
  });

  it("of a graph with an unknown model is refused before anything runs", async () => {
    const aggregate = { ...JUDGE, model: "nobody/knows" };
    const refused = await run.send("/dag", { json: { tasks: [{ id: "a", prompt: "red" }], aggregate } });
    expect([errorOf(refused).code, asked.size]).toEqual(["model_not_found", 0]);
  });
});

describe("a merge by a model", () => {
  const MERGE = { strategy: "merge", mode: "llm", model: "up-merge", max_tokens: 2_000 };

  it("is one call while the parts fit, and none for one part", async () => {
    const { aggregation: merged } = await batch({ prompts: ["p1", "p2", "fail"], aggregate: MERGE });
    expect(merged).toMatchObject({ strategy: "merge", mode: "llm", output: "(p1+p2)", merged: 2, error: null });
    expect(sentTo("up-merge")).toHaveLength(1);
    const { aggregation: one } = await batch({ prompts: ["p1"], aggregate: MERGE });
    expect(one).toMatchObject({ output: "p1", groups: [] });
  });

  it("of a graph combines its results, each element of a foreach for itself", async () => {
    const tasks = [
      { id: "find", prompt: '["p1", "p2"]' },
      { id: "each", foreach: "{{find.output.json}}", prompt: "{{item}}" },
    ];
    const sent = await run.send("/dag", { json: { tasks, max_tokens: 100, aggregate: MERGE } });
    expect(sent.json).toMatchObject({ status: "completed", aggregation: { output: "(p1+p2)", merged: 2 } });
  });

  it("is a tree where they do not, whose levels keep the order", async () => {
    const part = (at: number): string => `p${at}${"x".repeat(900)}`;
    const prompts = Array.from({ length: 5 }, (_, at) => part(at));
    const { aggregation: merged } = await batch({
      prompts,
      max_tokens: 400,
      aggregate: { ...MERGE, max_chars: 2_000 },
    });
    expect(sentTo("up-merge")).toHaveLength(4);
    expect(merged.groups).toHaveLength(3);
    const output = z.string().parse(merged["output"]);
    expect(output.match(/p\d/g)?.[0]).toBe("p0");
    expect(output.length).toBeLessThanOrEqual(2_500);
  });
});

describe("a vote that decides nothing", () => {
  const VOTE = { strategy: "vote", escalate: { model: "up-chief", max_tokens: 50 } };

  it("goes to another model with every answer, which the reply names", async () => {
    const { aggregation: voted } = await batch({ prompts: ["red", "green"], aggregate: VOTE });
    expect(voted).toMatchObject({ decided: false, tie: true, escalated: { to: "up-chief", output: "blue" } });
    expect(sentTo("up-chief")[0]).toContain("## Answer 2\ngreen");
  });

  it("stays where it is if the votes decide, or all members failed", async () => {
    const { aggregation: voted } = await batch({ prompts: ["red", "Red."], aggregate: VOTE });
    expect(voted).toMatchObject({ decided: true, winner: "red", escalated: null, groups: [] });
    const { aggregation: none } = await batch({ prompts: ["fail"], aggregate: VOTE });
    expect(none).toMatchObject({ decided: false, escalated: null });
    expect(sentTo("up-chief")).toEqual([]);
  });

  it("is asked for by a client that comes later, if none waited", async () => {
    const opened = await run.send("/batch", { json: { prompts: ["a", "b"], aggregate: VOTE }, headers: ASYNC });
    const ended = await endOf(run, opened.headers.get("location") ?? "");
    expect(group.parse(ended.json).aggregation).toMatchObject({ escalated: { output: "blue" } });
  });

  it("without a model ends its group as escalated, with one event, in every form of the answer", async () => {
    const own = await world.openRun({ default_model: "up-1", max_parallel: 8 });
    const body = { prompts: ["red", "green"], aggregate: { strategy: "vote", escalate: {} } };
    const sent = await own.send("/batch", { json: body });
    expect(sent.json).toMatchObject({ status: "escalated", aggregation: { decided: false, tie: true } });
    const { id } = z.looseObject({ id: z.string() }).parse(sent.json);
    expect((await endOf(own, `/groups/${id}`)).json).toMatchObject({ id, status: "escalated" });
    expect((await own.send(`/groups/${id}/report?format=json`)).json).toMatchObject({ status: "escalated" });
    const streamed = await own.send("/batch", { json: body, headers: { accept: "application/x-ndjson" } });
    expect(streamed.text.trim().split("\n").at(-1)).toContain('"status":"escalated"');
    const lines = (await logOf(own)).filter((line) => line["parallel_group_id"] === id);
    expect(lines.slice(-2)).toMatchObject([
      { event_type: "escalated", index: null, tier: null, code: "vote_undecided", message: expect.any(String) },
      { event_type: "group_completed", status: "escalated" },
    ]);
    expect(lines.filter((line) => line.event_type === "escalated")).toHaveLength(1);
    const decided = await own.send("/batch", { json: { ...body, prompts: ["red", "Red."] } });
    expect(decided.json).toMatchObject({ status: "completed", aggregation: { decided: true } });
    expect(sentTo("up-chief")).toEqual([]);
  });
});
