/** `fanout/panel`: one ordinary call that several models and a judge answer. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamCall } from "../support/upstream.ts";
import { answerOf, documentOf, errorOf, type RunAccess } from "./world.ts";

const calls: UpstreamCall[] = [];
const sentTo = (model: string) => calls.filter(({ body }) => body["model"] === model);
let failing: ReadonlySet<string> = new Set();
let judged = "the answer";

let upstream: TestUpstream;
let gateway: Gateway;
let run: RunAccess;
beforeAll(async () => {
  upstream = await startUpstream((call) => {
    calls.push(call);
    const model = String(call.body["model"]);
    if (failing.has(model)) return { status: 400 };
    return { text: model === "d" ? judged : `says ${model}` };
  });
  const prices = { "*": { input: 1, output: 1 } };
  const UPSTREAMS = { up: { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices } };
  const PANEL = { panel: ["up/a", "up/b", "up/c"], judge: "up/d" };
  gateway = await startGateway({ vars: { UPSTREAMS, PANEL } });
  run = await openRun({ budget: { usd: 1 }, max_parallel: 4 });
});
beforeEach(() => {
  calls.splice(0);
  failing = new Set();
  judged = "the answer";
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function openRun(body: Record<string, unknown>): Promise<RunAccess> {
  const { id, token } = await gateway.openRun(body);
  return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
}

const MODEL = { model: "fanout/panel", max_tokens: 50 };
const usage = z.looseObject({ cost: z.number(), prompt_tokens: z.int() });
const reply = z.looseObject({ text: z.string(), model: z.string(), attempts: z.int(), usage });
const query = (json: object, access = run, headers: Record<string, string> = {}) =>
  access.send("/query", { json: { ...MODEL, ...json }, headers });
const chat = (json: object, access = run) =>
  access.send("/v1/chat/completions", { json: { ...MODEL, messages: [{ role: "user", content: "hi" }], ...json } });

describe("a /query to the panel", () => {
  it("asks every member, and the judge with their answers; it costs what they cost", async () => {
    const before = (await documentOf(run)).budget.usd?.spent ?? 0;
    const answer = reply.parse((await query({ prompt: "hi", system: "Be short." })).json);
    expect(answer).toMatchObject({ text: "the answer", model: "fanout/panel", attempts: 4 });
    for (const model of ["a", "b", "c"]) {
      expect(sentTo(model).map(({ body }) => body.messages)).toEqual([
        [
          { role: "system", content: "Be short." },
          { role: "user", content: "hi" },
        ],
      ]);
    }
    const [judge] = sentTo("d");
    expect(judge?.body.messages.map(({ role }) => role)).toEqual(["system", "user", "user"]);
    for (const said of ["says a", "says b", "says c"]) expect(judge?.prompt).toContain(said);
    expect(((await documentOf(run)).budget.usd?.spent ?? 0) - before).toBeCloseTo(answer.usage.cost, 9);
  });

  it("leaves out members that fail, and fails if all do, or the judge", async () => {
    failing = new Set(["a", "c"]);
    expect(reply.parse((await query({ prompt: "hi" })).json)).toMatchObject({ text: "the answer", attempts: 4 });
    expect(sentTo("d")[0]?.prompt).toContain("2 failures");
    failing = new Set(["a", "b", "c"]);
    expect(errorOf(await query({ prompt: "hi" }))).toMatchObject({ code: "upstream_error" });
    expect(sentTo("d")).toHaveLength(1);
    failing = new Set(["d"]);
    expect(errorOf(await query({ prompt: "hi" }))).toMatchObject({ code: "upstream_error" });
  });

  it("checks the judge's answer against a schema, and no member's", async () => {
    judged = '{"n":1}';
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    expect((await query({ prompt: "hi", schema })).json).toMatchObject({ json: { n: 1 }, attempts: 4 });
    expect(sentTo("a")[0]?.body).not.toHaveProperty("response_format");
  });

  it("is made once under an Idempotency-Key", async () => {
    const key = { "idempotency-key": "panel-1" };
    const [first, again] = [await query({ prompt: "hi" }, run, key), await query({ prompt: "hi" }, run, key)];
    expect(reply.parse(again.json)).toMatchObject({ text: "the answer", usage: reply.parse(first.json).usage });
    expect(calls).toHaveLength(4);
    const other = await query({ prompt: "other" }, run, key);
    expect([other.status, errorOf(other)?.code]).toEqual([409, "idempotency_conflict"]);
  });

  it("never exceeds the budget: what it does not cover is not sent", async () => {
    const small = await openRun({ budget: { calls: 2 }, max_parallel: 1 });
    const failed = await query({ prompt: "hi" }, small);
    expect([failed.status, errorOf(failed)?.code, calls.length]).toEqual([402, "budget_exhausted", 2]);
  });

  it.each([
    ["samples", { prompt: "hi", samples: {} }, {}],
    ["Prefer: respond-async", { prompt: "hi" }, { prefer: "respond-async" }],
  ])("is refused with %s, and nothing is sent", async (_, json, headers) => {
    expect([(await query(json, run, headers)).status, calls]).toEqual([400, []]);
  });

  it("is allowed to a run whose list has all of its models", async () => {
    const allowed = await openRun({ models: ["up/*"], budget: { usd: 1 } });
    expect((await query({ prompt: "hi" }, allowed)).status).toBe(200);
    calls.splice(0);
    const narrow = await openRun({ models: ["up/a", "up/b", "up/d"], budget: { usd: 1 } });
    const refused = await query({ prompt: "hi" }, narrow);
    expect([refused.status, errorOf(refused)?.code, calls]).toEqual([403, "model_not_allowed", []]);
    const ids = async (access: RunAccess) =>
      z
        .looseObject({ data: z.array(z.looseObject({ id: z.string() })) })
        .parse((await access.send("/v1/models")).json)
        .data.map(({ id }) => id);
    expect([(await ids(allowed)).includes("fanout/panel"), (await ids(narrow)).includes("fanout/panel")]).toEqual([
      true,
      false,
    ]);
  });
});

describe("a chat completion of the panel", () => {
  it("is one like any other", async () => {
    const answer = await chat({ temperature: 0.5, stop: ["x"] });
    expect(answer.json).toMatchObject({
      object: "chat.completion",
      model: "fanout/panel",
      choices: [{ index: 0, message: { role: "assistant", content: "the answer" }, finish_reason: "stop" }],
    });
    expect(sentTo("b")[0]?.body).toMatchObject({ temperature: 0.5, stop: ["x"] });
    expect(calls).toHaveLength(4);
  });

  it("streams the answer, its usage if that is asked for, and its end", async () => {
    const answer = await chat({ stream: true, stream_options: { include_usage: true } });
    const events = answer.text.split("\n\n").filter((event) => event.startsWith("data: "));
    expect(events.at(-1)).toBe("data: [DONE]");
    const chunks = events.slice(0, -1).map((event): unknown => JSON.parse(event.slice(6)));
    expect(chunks).toMatchObject([
      { object: "chat.completion.chunk", choices: [{ delta: { content: "the answer" } }] },
      { choices: [{ finish_reason: "stop" }] },
      { choices: [], usage: { prompt_tokens: expect.any(Number) as unknown } },
    ]);
  });

  it("ends a stream with the error of a panel that fails", async () => {
    failing = new Set(["a", "b", "c"]);
    const answer = await chat({ stream: true });
    expect(answer.text).toContain('data: {"error":');
    expect(answer.text).not.toContain("[DONE]");
  });

  it("refuses what no model may be sent, by its name", async () => {
    const refused = await chat({ n: 2 });
    expect([refused.status, calls]).toEqual([400, []]);
  });
});
