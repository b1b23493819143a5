/** Calls with a schema: what the provider is sent, what is delivered, what is asked again and what that costs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { SCHEMA_BYTES_MAX, SCHEMA_RETRIES_MAX } from "../../src/limits.ts";
import { TOKENS_PER_MESSAGE } from "../support/completion.ts";
import type { UpstreamCall } from "../support/upstream.ts";
import { ASYNC, endOf, logOf, openGroup } from "./following.ts";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

const SCHEMA = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
  additionalProperties: false,
};
const VALID = '{"n":1}';
const MISFIT = '{"n":"one"}';
const VIOLATION = "$.n: expected integer, received string";

/** The requests that arrived, in order. */
const requests: UpstreamCall[] = [];

/** A prompt says what its calls are answered, one after another; the last answer repeats: `a|b|c`. */
function answerOf(call: UpstreamCall): { text: string } {
  requests.push(call);
  const [first] = call.body.messages.filter(({ content }) => !String(content).startsWith("Answer with one JSON"));
  const answers = String(first?.content).split("|").slice(1);
  const repeated = call.body.messages.find(({ role }) => role === "assistant")?.content;
  const round = answers.indexOf(String(repeated)) + 1;
  return { text: answers[Math.min(round, answers.length - 1)] ?? "" };
}

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(answerOf);
  run = await world.openRun({ default_model: "up-1", budget: { usd: 5 }, max_parallel: 8 });
});
beforeEach(() => void requests.splice(0));
afterAll(() => world.stop());

const reply = z.looseObject({
  text: z.string(),
  json: z.unknown().optional(),
  attempts: z.int(),
  usage: z.looseObject({}),
});
const slot = z.looseObject({ status: z.string(), json: z.unknown().optional(), attempts: z.int() });
const failure = z.looseObject({ code: z.string(), message: z.string(), text: z.string().optional() });
const group = z.looseObject({
  results: z.array(z.string()),
  errors: z.array(failure.nullable()),
  items: z.array(slot),
});

/** As the provider counts them. */
const promptTokensOf = (call: UpstreamCall): number =>
  Math.ceil(call.bytes / 4) + TOKENS_PER_MESSAGE * call.messageCount;

let names = 0;
/** A prompt that no other test has. */
const asking = (...answers: string[]) => [`prompt ${(names += 1)}`, ...answers].join("|");
const query = (json: Record<string, unknown>, headers: Record<string, string> = {}): Promise<Answer> =>
  run.send("/query", { json: { schema: SCHEMA, max_tokens: 200, ...json }, headers });

describe("a /query with a schema", () => {
  it("sends it in the provider's field, and answers with the value beside the text", async () => {
    const answer = await query({ prompt: asking(` ${VALID}\n`) });
    expect(reply.parse(answer.json)).toMatchObject({ text: ` ${VALID}\n`, json: { n: 1 }, attempts: 1 });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.body["response_format"]).toEqual({
      type: "json_schema",
      json_schema: { name: "answer", schema: SCHEMA, strict: true },
    });
  });

  it("reads JSON out of a code block, and leaves the text as it is", async () => {
    const fenced = ["```json", VALID, "```"].join("\n");
    expect(reply.parse((await query({ prompt: asking(fenced) })).json)).toMatchObject({ text: fenced, json: { n: 1 } });
  });

  it("asks again with the answer and what is wrong with it, and charges both attempts", async () => {
    const prompt = asking(MISFIT, VALID);
    const answer = reply.parse((await query({ prompt })).json);
    expect(answer).toMatchObject({ text: VALID, json: { n: 1 }, attempts: 2 });
    const [first, second] = requests.map(({ body }) => body.messages);
    expect(first).toEqual([{ role: "user", content: prompt }]);
    expect(second?.slice(0, 2)).toEqual([...(first ?? []), { role: "assistant", content: MISFIT }]);
    expect(second?.[2]).toMatchObject({ role: "user", content: expect.stringContaining(VIOLATION) as unknown });
    expect(second?.[2]?.content).toContain(JSON.stringify(SCHEMA));
    expect(answer.usage["prompt_tokens"]).toBe(requests.reduce((sum, call) => sum + promptTokensOf(call), 0));
    expect(answer.usage["completion_tokens"]).toBe(Math.ceil(MISFIT.length / 4) + Math.ceil(VALID.length / 4));
  });

  it.each([
    [0, 1],
    [2, 3],
  ])(
    "that may be asked %i times again fails after %i answers that do not fit, with the last",
    async (retries, calls) => {
      const before = await documentOf(run);
      const answer = await query({ prompt: asking("no", "{}", MISFIT), schema_retries: retries });
      expect(answer.status).toBe(502);
      const error = failure.parse(errorOf(answer));
      const last = ["no", "{}", MISFIT][calls - 1];
      expect(error).toMatchObject({ code: "schema_violation", retryable: false, attempts: calls, text: last });
      expect(requests).toHaveLength(calls);
      const { budget, metrics } = await documentOf(run);
      expect(error["charged_usd"]).toBeCloseTo((budget.usd?.spent ?? 0) - (before.budget.usd?.spent ?? 0), 9);
      expect(metrics.attempts).toBe(before.metrics.attempts + calls);
    },
  );

  it("stored under an Idempotency-Key replays the answer with its value, and the failure with its text", async () => {
    const named = { "idempotency-key": `schema-${(names += 1)}` };
    const valid = asking(MISFIT, VALID);
    const [first, again] = [await query({ prompt: valid }, named), await query({ prompt: valid }, named)];
    expect(reply.parse(first.json)).toMatchObject({ text: VALID, json: { n: 1 }, attempts: 2 });
    expect([again.text, requests.length]).toEqual([first.text, 2]);
    const other = { "idempotency-key": `schema-${(names += 1)}` };
    const invalid = asking(MISFIT);
    const failed = [await query({ prompt: invalid }, other), await query({ prompt: invalid }, other)];
    for (const answer of failed) {
      expect([answer.status, errorOf(answer)]).toMatchObject([
        502,
        { code: "schema_violation", text: MISFIT, attempts: 2 },
      ]);
    }
    expect(requests).toHaveLength(4);
  });

  it("that equal calls share with dedupe has one answer, repaired once", async () => {
    const json = { prompt: asking(MISFIT, VALID), dedupe: true };
    const answers = await Promise.all([query(json), query(json), query(json)]);
    for (const answer of answers) expect(reply.parse(answer.json)).toMatchObject({ json: { n: 1 } });
    expect(requests.length % 2).toBe(0);
  });

  it("ends with the last answer where the budget does not pay for another", async () => {
    // Its prompt, schema and cap are 600 tokens at most, of which the answer uses few: the second one needs 900.
    const tight = await world.openRun({ default_model: "up-1", budget: { calls: 1 } });
    for (const headers of [{}, { "idempotency-key": "tight" }]) {
      const answer = await tight.send("/query", { json: { prompt: asking(MISFIT, VALID), schema: SCHEMA }, headers });
      if (Object.keys(headers).length > 0) expect(errorOf(answer).code).toBe("budget_exhausted");
      else expect(errorOf(answer)).toMatchObject({ code: "schema_violation", text: MISFIT, attempts: 1 });
    }
    expect(requests).toHaveLength(1);
  });

  it("reserves what the second request has more: a long answer never overruns the limit", async () => {
    const long = `{"n":"${"é".repeat(4_000)}"}`;
    const limited = await world.openRun({ default_model: "up-1", budget: { usd: 0.1, prompt_tokens: 60_000 } });
    const json = { prompt: asking(long, VALID), schema: SCHEMA, max_tokens: 4_000 };
    expect(reply.parse((await limited.send("/query", { json })).json)).toMatchObject({ json: { n: 1 }, attempts: 2 });
    const reserved = (await logOf(limited)).filter(({ event_type: type }) => type === "attempt_started");
    const [first, second] = reserved.map((line) => z.looseObject({ prompt_tokens: z.int() }).parse(line["reserved"]));
    expect((second?.prompt_tokens ?? 0) - (first?.prompt_tokens ?? 0)).toBeGreaterThan(8_000);
    expect(await logOf(limited)).not.toContainEqual(expect.objectContaining({ event_type: "overrun" }));
  });
});

describe("a batch with a schema", () => {
  const expected = [
    { status: "completed", json: { n: 1 }, attempts: 1 },
    { status: "completed", json: { n: 2 }, attempts: 2 },
    { status: "failed", attempts: 2 },
  ];
  const prompts = () => [asking(VALID), asking("none", '{"n":2}'), asking(MISFIT)];

  it("has each value in items, in the answer and in the page of results; a failure has its last text", async () => {
    const { at } = await openGroup(run, { prompts: prompts(), schema: SCHEMA, max_tokens: 50 });
    const { results, errors, items } = group.parse((await endOf(run, at)).json);
    expect(items).toMatchObject(expected);
    expect(items[2]).not.toHaveProperty("json");
    expect(results.slice(0, 2)).toEqual([VALID, '{"n":2}']);
    expect(errors).toMatchObject([null, null, { code: "schema_violation", message: VIOLATION, text: MISFIT }]);
    const page = z.looseObject({ data: z.array(slot) }).parse((await run.send(`${at}/results`)).json);
    expect(page.data).toMatchObject(expected);
    const answered = group.parse((await run.send("/batch", { json: { prompts: prompts(), schema: SCHEMA } })).json);
    expect(answered.items).toMatchObject(expected);
    expect(answered.errors[2]).toMatchObject({ code: "schema_violation", text: MISFIT });
  });

  it.each(["application/x-ndjson", "text/event-stream"])("has each value in its line of %s", async (accept) => {
    const request = { json: { prompts: prompts(), schema: SCHEMA }, headers: { accept } };
    const { text } = await run.send("/batch", request);
    const lines = text.split("\n").flatMap((line) => /^(?:data: )?(\{.*)$/.exec(line)?.[1] ?? []);
    const slots = lines.map((line) => z.looseObject({ index: z.int().optional() }).parse(JSON.parse(line)));
    for (const [index, end] of expected.entries()) {
      expect(slots.find((each) => each["type"] === "slot" && each.index === index)).toMatchObject(end);
    }
    expect(slots.find((each) => each.index === 2)).toMatchObject({ error: { code: "schema_violation", text: MISFIT } });
  });

  it("lets an item have a schema and a number of retries of its own, and others none", async () => {
    const other = { type: "array", items: { type: "number" } };
    const items = [
      { prompt: asking("[1]"), schema: other },
      { prompt: asking(MISFIT), schema: SCHEMA, schema_retries: 0 },
      { prompt: asking("free text") },
    ];
    const answered = group.parse((await run.send("/batch", { json: { items } })).json);
    expect(answered.items).toMatchObject([{ json: [1] }, { status: "failed", attempts: 1 }, { status: "completed" }]);
    expect(answered.items[2]).not.toHaveProperty("json");
    expect(requests.find(({ prompt }) => prompt.includes("free text"))?.body).not.toHaveProperty("response_format");
  });

  it(
    "of 1,000 items whose first answer is invalid one time in five completes all after one repair, none invalid",
    { tags: ["slow"] },
    async () => {
      const count = 1_000;
      const isHit = (at: number) => at % 5 === 0;
      const items = Array.from({ length: count }, (_, at) => ({
        prompt: isHit(at) ? asking(MISFIT, `{"n":${at}}`) : asking(`{"n":${at}}`),
      }));
      const own = await world.openRun({ default_model: "up-1", budget: { usd: 5 }, max_parallel: 64 });
      const json = { items, schema: SCHEMA, max_tokens: 20 };
      const answered = group.parse((await own.send("/batch", { json })).json);
      expect(answered.items.map((item) => item.json)).toEqual(items.map((_, at) => ({ n: at })));
      expect(answered.items.map(({ attempts }) => attempts)).toEqual(items.map((_, at) => (isHit(at) ? 2 : 1)));
      const told = requests.splice(0).reduce(
        (sum, call) => {
          const { text } = answerOf(call);
          return { prompt: sum.prompt + promptTokensOf(call), completion: sum.completion + Math.ceil(text.length / 4) };
        },
        { prompt: 0, completion: 0 },
      );
      const { budget } = await documentOf(own);
      expect(budget.usd?.spent).toBeCloseTo((told.prompt + 2 * told.completion) / 1e6, 9);
      expect(budget.usd?.reserved).toBe(0);
    },
  );

  it("shows in the log why an attempt failed and what was asked again", async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const { at } = await openGroup(own, { prompts: [asking(MISFIT, VALID)], schema: SCHEMA });
    await endOf(own, at);
    const lines = await logOf(own);
    expect(lines).toContainEqual(
      expect.objectContaining({
        event_type: "attempt_ended",
        attempt: 1,
        outcome: "rejected",
        code: "schema_violation",
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ event_type: "retry_scheduled", attempt: 2, delay_ms: 0, code: "schema_violation" }),
    );
  });
});

describe("a task of a graph with a schema", () => {
  it("is asked again like any call, and others refer to its value", async () => {
    const tasks = [
      { id: "count", prompt: asking("none", '{"n":7}'), schema: SCHEMA, max_retries: 0 },
      { id: "use", prompt: "{{count.output.json.n}} sails|done" },
      { id: "never", prompt: asking(MISFIT), schema: SCHEMA, schema_retries: 0 },
    ];
    const answer = await run.send("/dag", { json: { tasks, max_tokens: 100 } });
    const graph = z
      .looseObject({ tasks: z.record(z.string(), z.looseObject({ status: z.string() })) })
      .parse(answer.json);
    expect(graph.tasks["count"]).toMatchObject({ status: "completed", attempts: 2 });
    expect(graph.tasks["use"]).toMatchObject({ status: "completed", output: "done" });
    expect(requests.map(({ prompt }) => prompt)).toContain("7 sails|done");
    expect(graph.tasks["never"]).toMatchObject({ status: "failed", error: { code: "schema_violation", text: MISFIT } });
  });
});

describe("a schema is refused", () => {
  const tooLarge = { description: "x".repeat(SCHEMA_BYTES_MAX) };
  it.each<[string, Record<string, unknown>, string]>([
    ["that is a list", { schema: [] }, "schema"],
    ["that is a text", { schema: "{}" }, "schema"],
    ["with a fault inside", { schema: { properties: { a: { type: "text" } } } }, "schema.properties.a.type"],
    ["with a pattern that could take for ever", { schema: { pattern: "(a+)+\\1$" } }, "schema.pattern"],
    ["that refers to itself", { schema: { $ref: "#" } }, "schema"],
    [
      "with a keyword that is not checked",
      { schema: { unevaluatedProperties: false } },
      "schema.unevaluatedProperties",
    ],
    ["that is too large", { schema: tooLarge }, "schema"],
    ["beside another format", { schema: SCHEMA, params: { response_format: { type: "json_object" } } }, "schema"],
    ["with too many retries", { schema: SCHEMA, schema_retries: SCHEMA_RETRIES_MAX + 1 }, "schema_retries"],
    ["with a negative number of retries", { schema: SCHEMA, schema_retries: -1 }, "schema_retries"],
  ])("%s, by its path, before anything is sent", async (_, fields, param) => {
    const single = await run.send("/query", { json: { prompt: "a", ...fields } });
    expect([single.status, errorOf(single).param]).toEqual([400, param]);
    const batch = await run.send("/batch", { json: { items: [{ prompt: "a" }, { prompt: "a", ...fields }] } });
    expect([batch.status, errorOf(batch).param]).toEqual([400, `items[1].${param}`]);
    const whole = await run.send("/batch", { json: { prompts: ["a"], ...fields }, headers: ASYNC });
    expect([whole.status, errorOf(whole).param]).toEqual([400, param]);
    expect(requests).toEqual([]);
  });

  it.each(["(a+)+$", "^(a|a)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])(
    "never for the pattern %s, which takes steps in proportion to the answer",
    async (pattern) => {
      const schema = { type: "string", pattern };
      const answer = await query({
        prompt: asking(`"${"a".repeat(20_000)}!"`),
        schema,
        schema_retries: 0,
        max_tokens: 9_000,
      });
      expect(errorOf(answer).code).toBe("schema_violation");
      expect(errorOf(answer).message).toContain("does not match");
    },
  );
});
