/** Calls that are more than one answer: cascades of models, and samples. What is asked, delivered, shown and charged. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { ASYNC, endOf, logOf, openGroup } from "./following.ts";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const CASCADE = { models: ["up-cheap", "up-strong"], max_tokens: 100 };

/** The models that were asked, in order. */
const asked: string[] = [];
const sends = new Map<string, number>();

/** A prompt says what each model answers: `cheap=…;strong=…`. Of several answers, the n-th send gets the n-th: `a|b|c`. */
function answerOf({ body, prompt }: UpstreamCall): UpstreamAnswer {
  const model = String(body["model"]);
  asked.push(model);
  const first = String(body.messages[0]?.content ?? prompt);
  const mine = first.split(";").find((part) => part.startsWith(`${model.slice(3)}=`));
  const answers = (mine ?? first).slice((mine ?? "").indexOf("=") + 1).split("|");
  const at = sends.get(`${model} ${first}`) ?? 0;
  sends.set(`${model} ${first}`, at + 1);
  const answer = answers[Math.min(at, answers.length - 1)] ?? "";
  return /^\d{3}$/.test(answer) ? { status: Number(answer) } : { text: answer };
}

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(answerOf);
  run = await world.openRun({ default_model: "up-1", budget: { usd: 5 }, max_parallel: 4 });
});
beforeEach(() => {
  asked.splice(0);
  sends.clear();
});
afterAll(() => world.stop());

const step = z.strictObject({ model: z.string(), outcome: z.string(), attempts: z.int(), cost: z.number() });
const samples = z.strictObject({
  made: z.int(),
  failed: z.int(),
  votes: z.int(),
  agreement: z.number(),
  counts: z.array(z.strictObject({ answer: z.string(), votes: z.int() })),
});
const courseFields = {
  model: z.string().nullable(),
  attempts: z.int(),
  steps: z.array(step).optional(),
  decided: z.boolean().optional(),
  samples: samples.optional(),
  usage: z.looseObject({ cost: z.number() }),
};
const reply = z.looseObject({ text: z.string(), json: z.unknown().optional(), ...courseFields });
const item = z.looseObject({ ...courseFields, status: z.string(), usage: courseFields.usage.nullable() });
const group = z.looseObject({
  status: z.string(),
  results: z.array(z.string()),
  errors: z.array(z.looseObject({ code: z.string() }).nullable()),
  items: z.array(item),
  usage: z.looseObject({ cost: z.number() }),
});

const query = (json: object, headers: Record<string, string> = {}): Promise<Answer> =>
  run.send("/query", { json: { ...CASCADE, ...json }, headers });
const spentUsd = async (): Promise<number> => (await documentOf(run)).budget.usd?.spent ?? 0;

describe("a cascade", () => {
  it("ends with its first model while no gate stops the answer, and shows no steps", async () => {
    const answer = reply.parse((await query({ prompt: "cheap=fine;strong=better" })).json);
    expect(answer).toMatchObject({ text: "fine", model: "up-cheap", attempts: 1 });
    expect([answer.steps, asked]).toEqual([undefined, ["up-cheap"]]);
  });

  it("continues after an empty answer, and shows which model answered and what each cost", async () => {
    const before = await spentUsd();
    const answer = reply.parse((await query({ prompt: "cheap=;strong=better" })).json);
    expect(answer).toMatchObject({ text: "better", model: "up-strong", attempts: 2 });
    expect(asked).toEqual(["up-cheap", "up-strong"]);
    expect(answer.steps?.map(({ model, outcome, attempts }) => [model, outcome, attempts])).toEqual([
      ["up-cheap", "empty", 1],
      ["up-strong", "completed", 1],
    ]);
    const costs = answer.steps?.map(({ cost }) => cost) ?? [];
    expect(Math.min(...costs)).toBeGreaterThan(0);
    expect((costs[0] ?? 0) + (costs[1] ?? 0)).toBeCloseTo(answer.usage.cost, 9);
    expect((await spentUsd()) - before).toBeCloseTo(answer.usage.cost, 9);
  });

  it("continues after the last repair of an answer that does not fit, with the request as it was", async () => {
    const json = { prompt: 'cheap=no|no;strong={"n":1}', schema: SCHEMA };
    const answer = reply.parse((await query(json)).json);
    expect(answer).toMatchObject({ json: { n: 1 }, model: "up-strong", attempts: 3 });
    expect(answer.steps).toMatchObject([{ outcome: "schema_violation", attempts: 2 }, { attempts: 1 }]);
    expect(asked).toEqual(["up-cheap", "up-cheap", "up-strong"]);
  });

  it("continues by a condition on the JSON, and delivers the last model's answer whatever it says", async () => {
    const escalate_on = { json: "$.sure < 0.7" };
    const unsure = (sure: number) => JSON.stringify({ sure });
    const first = await query({ prompt: `cheap=${unsure(0.7)};strong=no`, escalate_on });
    expect(reply.parse(first.json)).toMatchObject({ model: "up-cheap" });
    const second = await query({ prompt: `cheap=${unsure(0.69)};strong=${unsure(0.1)}`, escalate_on });
    expect(reply.parse(second.json)).toMatchObject({ model: "up-strong", text: unsure(0.1) });
    expect(reply.parse(second.json).steps).toMatchObject([{ outcome: "json" }, { outcome: "completed" }]);
  });

  it("does not go on after a failure that is no gate, or a gate that escalate_on leaves out", async () => {
    expect((await query({ prompt: "cheap=400;strong=fine" })).status).toBe(502);
    const empty = await query({ prompt: "cheap=;strong=fine", escalate_on: ["length"] });
    expect(reply.parse(empty.json)).toMatchObject({ text: "", model: "up-cheap" });
    expect(asked).toEqual(["up-cheap", "up-cheap"]);
  });

  it(
    "retries each model as often as it is configured, and fails as its last one does",
    { tags: ["slow"] },
    async () => {
      const failed = await query({ prompt: "cheap=500|500|;strong=500|500|400" });
      expect(errorOf(failed)).toMatchObject({ code: "upstream_error", attempts: 6 });
      expect(asked).toEqual(["up-cheap", "up-cheap", "up-cheap", "up-strong", "up-strong", "up-strong"]);
    },
  );

  it("is recorded under an Idempotency-Key, and logged as attempts of one call", async () => {
    const named = { "idempotency-key": "cascade-1" };
    const json = { prompt: "cheap=;strong=recorded" };
    const [first, again] = [await query(json, named), await query(json, named)];
    expect([again.text, again.headers.get("idempotent-replayed"), asked.length]).toEqual([first.text, "true", 2]);
    const started = (await logOf(run)).filter((line) => line.event_type === "attempt_started").slice(-2);
    expect(started.map((line) => [line["model"], line["attempt"]])).toEqual([
      ["up-cheap", 1],
      ["up-strong", 2],
    ]);
    expect(started[0]?.["slot"]).toBe(started[1]?.["slot"]);
  });

  it("holds for the items of a batch and the tasks of a graph, each by itself", async () => {
    const prompts = ["cheap=a;strong=A", "cheap=;strong=B", "cheap=;strong=400"];
    const answer = group.parse((await run.send("/batch", { json: { prompts, ...CASCADE } })).json);
    expect(answer.results.slice(0, 2)).toEqual(["a", "B"]);
    expect(answer.items.map(({ steps }) => steps?.map(({ outcome }) => outcome))).toEqual([
      undefined,
      ["empty", "completed"],
      ["empty", "upstream_error"],
    ]);
    const tasks = [
      { id: "a", prompt: "cheap=;strong=found" },
      { id: "b", prompt: "one={{a.output}}", model: "up-one" },
    ];
    const graph = await run.send("/dag", { json: { tasks, ...CASCADE } });
    expect(z.looseObject({ outputs: z.unknown() }).parse(graph.json).outputs).toEqual({ b: "found" });
  });

  it("refuses a batch by the name of a later model that nobody serves", async () => {
    const refused = await run.send("/batch", { json: { prompts: ["a"], models: ["up-1", "nobody/x"] } });
    expect([refused.status, errorOf(refused)?.code, asked]).toEqual([404, "model_not_found", []]);
  });

  it("never spends more than the budget: what the next model would cost is reserved before it is sent", async () => {
    const small = await world.openRun({ budget: { calls: 1 }, max_parallel: 1 });
    const failed = await small.send("/query", { json: { ...CASCADE, prompt: "cheap=;strong=late" } });
    expect([failed.status, errorOf(failed)?.code, asked]).toEqual([402, "budget_exhausted", ["up-cheap"]]);
  });

  it("is quoted with all of its models, and samples with their most", async () => {
    const cost = async (json: object) => {
      const quoted = await run.send("/batch?quote=1", { json: { prompts: ["same"], max_tokens: 100, ...json } });
      return z.looseObject({ worst_usd: z.number() }).parse(quoted.json).worst_usd;
    };
    const one = await cost({ model: "up-cheap" });
    expect(await cost(CASCADE)).toBeCloseTo(2 * one, 9);
    expect(await cost({ model: "up-cheap", samples: { max: 5 } })).toBeCloseTo(5 * one, 9);
  });
});

describe("samples", () => {
  const sampled = async (prompt: string, rule: object = {}, more: object = {}) =>
    reply.parse((await run.send("/query", { json: { prompt, samples: rule, model: "up-x", ...more } })).json);

  it("that agree are two calls", async () => {
    const answer = await sampled("x=Yes.|yes|no");
    expect(answer).toMatchObject({ text: "Yes.", decided: true, attempts: 2 });
    expect(answer.samples).toEqual({
      made: 2,
      failed: 0,
      votes: 2,
      agreement: 1,
      counts: [{ answer: "yes", votes: 2 }],
    });
  });

  it("go on until enough agree, deliver the answer that most gave, and are all charged", async () => {
    const before = await spentUsd();
    const answer = await sampled("x=no|yes|Yes|YES", { max: 8 });
    expect(answer).toMatchObject({ text: "Yes", decided: true, attempts: 4, samples: { made: 4, agreement: 0.75 } });
    expect((await spentUsd()) - before).toBeCloseTo(answer.usage.cost, 9);
  });

  it("end undecided at max, with the answer that leads", async () => {
    const answer = await sampled("x=a|b|b|b", { max: 4, agree: 1 });
    expect(answer).toMatchObject({ decided: false, samples: { made: 2 } });
    const more = await sampled("x=a|b|b|c|b", { max: 4 });
    expect(more).toMatchObject({ text: "b", decided: false, samples: { made: 4, votes: 4, agreement: 0.5 } });
  });

  it("that fail are no votes, and never decide", async () => {
    const mixed = await sampled("x=400|yes|400|yes", { max: 6 });
    expect(mixed).toMatchObject({ text: "yes", decided: true, samples: { made: 4, failed: 2, votes: 2 } });
    const failed = await run.send("/query", { json: { prompt: "x=400", samples: { max: 4 }, model: "up-x" } });
    expect([failed.status, errorOf(failed)?.code]).toEqual([502, "upstream_error"]);
  });

  it("are compared by a value in their JSON, each of which fits the schema", async () => {
    const rule = { by: "json_key", key: "n" };
    const answer = await sampled('x={"n":1}|no|{"n":1,"m":2}|{"n":3}', rule, { schema: SCHEMA });
    expect(answer).toMatchObject({ json: { n: 1 }, text: '{"n":1}', decided: true, attempts: 3 });
  });

  it("of each item are its own, in every form of answer", async () => {
    const prompts = ["x=a", "x=b|c|b|b"];
    const json = { prompts, model: "up-x", samples: {} };
    const { at } = await openGroup(run, json);
    const whole = group.parse((await endOf(run, at)).json);
    expect(whole.results).toEqual(["a", "b"]);
    expect(whole.items.map(({ decided, samples: made }) => [decided, made?.made])).toEqual([
      [true, 2],
      [true, 4],
    ]);
    sends.clear();
    const lines = await run.send("/batch", { json, headers: { accept: "application/x-ndjson" } });
    const slots = lines.text
      .split("\n")
      .filter((line) => line.includes('"type":"slot"'))
      .map((line) =>
        z.looseObject({ index: z.int(), result: z.string(), decided: z.boolean() }).parse(JSON.parse(line)),
      );
    expect(slots.toSorted((a, b) => a.index - b.index)).toMatchObject([
      { result: "a", decided: true },
      { result: "b", decided: true },
    ]);
    const page = await run.send(`${at}/results`);
    expect(z.looseObject({ data: z.array(item) }).parse(page.json).data[1]).toMatchObject({ decided: true });
  });

  it("end with the best answer so far when the budget ends, or the deadline passes", async () => {
    const small = await world.openRun({ budget: { calls: 2 }, max_parallel: 1 });
    const json = { prompt: "x=a|b", model: "up-x", max_tokens: 50, samples: { min: 4 } };
    const answer = reply.parse((await small.send("/query", { json })).json);
    expect(answer).toMatchObject({ text: "a", decided: false, samples: { made: 2, votes: 2 } });
  });

  it("vote with their group: the answer of an item is one vote", async () => {
    const json = { prompts: ["x=a", "x=a|b|a|a", "x=c"], model: "up-x", samples: {}, aggregate: { strategy: "vote" } };
    const answer = await run.send("/batch", { json });
    const { aggregation } = z.looseObject({ aggregation: z.looseObject({}) }).parse(answer.json);
    expect(aggregation).toMatchObject({ decided: true, winner: "a", votes: 3 });
  });

  it("are kept by a stored call that nobody waits for", async () => {
    const accepted = await run.send("/query", { json: { prompt: "x=k", model: "up-x", samples: {} }, headers: ASYNC });
    const ended = await endOf(run, accepted.headers.get("location") ?? "");
    expect(group.parse(ended.json).items[0]).toMatchObject({ decided: true, samples: { made: 2 } });
  });
});
