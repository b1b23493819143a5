/** Tools that a model uses while it answers, where the model is a pull worker, and where its answers come from a cassette. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerAsModel, heard, think } from "../support/tool-model.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { answerOf, documentOf, errorOf, PROVIDER_KEY, type RunAccess } from "./world.ts";

let upstream: ByteUpstream;
let tools: ToolServer;
let gateway: Gateway;

const KINDS = ["openai", "anthropic"] as const;
const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
const QUESTION = "How long are one, three, eleven?";

beforeAll(async () => {
  [upstream, tools] = await Promise.all([startByteUpstream(), startToolServer()]);
  upstream.serve(answerAsModel);
  const prices = { "*": { input: 1, output: 1 } };
  const taped = (kind: (typeof KINDS)[number], mode: string) => {
    const base_url = `${upstream.origin}${kind === "openai" ? "/v1" : ""}`;
    return { kind: "cassette", mode, tape: kind, upstream: { kind, base_url, api_key: "secret:PROVIDER_KEY", prices } };
  };
  const UPSTREAMS = {
    agents: { kind: "pull", prices },
    ...Object.fromEntries(
      KINDS.flatMap((kind) => [
        [`${kind}-record`, taped(kind, "record")],
        [`${kind}-play`, taped(kind, "replay")],
      ]),
    ),
  };
  gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY, TOOL_HOSTS: tools.host } });
});
beforeEach(() => {
  tools.forget();
  upstream.forget();
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([upstream.stop(), tools.stop()]);
});

/** A run with the tool `length` at a path of the tool server. */
async function runWith(path = "/length"): Promise<RunAccess> {
  const length = { name: "length", url: `http://${tools.host}${path}`, parameters: PARAMETERS };
  const { id, token } = await gateway.openRun({ budget: { usd: 100 }, tools: [length] });
  return { id, token, send: async (to, request) => answerOf(await gateway.fetch(to, { token, ...request })) };
}

const talk = z.looseObject({
  turns: z.int(),
  tool_calls: z.record(z.string(), z.int()),
  transcript: z.array(z.looseObject({ role: z.string() })),
  usage: z.looseObject({ cost: z.number() }),
});
const reply = talk.extend({ text: z.string() });
const group = z.looseObject({ results: z.array(z.string()), items: z.array(talk) });
const graph = z.looseObject({ outputs: z.record(z.string(), z.unknown()) });
const SETTINGS = { tools: ["length"], max_tokens: 50, include: ["transcript"] };

/** The same question on each way in: what each shows. */
async function askedOnAllWays(run: RunAccess, model: string) {
  const single = reply.parse((await run.send("/query", { json: { prompt: QUESTION, model, ...SETTINGS } })).json);
  const batch = { prompts: [QUESTION, "How long are a, bb?"], model, ...SETTINGS };
  const { results, items } = group.parse((await run.send("/batch", { json: batch })).json);
  const tasks = [
    { id: "a", prompt: QUESTION, tools: ["length"] },
    { id: "b", prompt: "How long are {{a.output}}?", tools: ["length"] },
  ];
  const { outputs } = graph.parse((await run.send("/dag", { json: { tasks, model, max_tokens: 50 } })).json);
  const talks = [single, ...items].map(({ turns, tool_calls: calls, transcript, usage }) => ({
    turns,
    calls,
    transcript,
    cost: usage.cost,
  }));
  return { texts: [single.text, ...results], output: outputs["b"], talks };
}

describe.each(KINDS)("a model of the kind %s on a cassette", (kind) => {
  it("says again what it said, turn by turn, while its tools are called anew", async () => {
    const recorded = await askedOnAllWays(await runWith(), `${kind}-record/m`);
    expect(recorded.texts).toEqual(["14 letters", "14 letters", "3 letters"]);
    expect(recorded.output).toBe("10 letters");
    const made = tools.requests.length;
    expect([upstream.calls.length > 0, made]).toEqual([true, 3 + 3 + 2 + 3 + 1]);
    upstream.forget();
    const run = await runWith();
    expect(await askedOnAllWays(run, `${kind}-play/m`)).toEqual(recorded);
    expect([upstream.calls.length, tools.requests.length]).toEqual([0, 2 * made]);
    expect((await documentOf(run)).budget.usd?.reserved).toBe(0);
  });

  it("knows no answer to results that it was never told: the tape has none to that request", async () => {
    const json = { prompt: QUESTION, ...SETTINGS };
    await (await runWith()).send("/query", { json: { ...json, model: `${kind}-record/m` } });
    const other = await runWith("/echo");
    const error = errorOf(await other.send("/query", { json: { ...json, model: `${kind}-play/m` } }));
    expect([error.code, tools.requests.at(-1)?.path]).toEqual(["cassette_miss", "/echo"]);
    expect((await documentOf(other)).budget.usd?.reserved).toBe(0);
  });
});

describe("a pull worker whose model uses tools", () => {
  const claimed = z.looseObject({
    items: z.tuple([z.looseObject({ lease_id: z.string(), request: z.looseObject({}) })]),
  });

  /** Does one item as the worker: its model says what it would over HTTP. */
  async function work(run: RunAccess): Promise<unknown> {
    const { json } = await run.send(`/runs/${run.id}/claim`, { json: { wait_ms: 60_000 } });
    const [{ lease_id: lease, request }] = claimed.parse(json).items;
    const said = think(heard(JSON.stringify(request)));
    const calls = "text" in said ? [] : said.calls;
    const message = {
      role: "assistant",
      content: "text" in said ? said.text : null,
      ...(calls.length > 0 && {
        tool_calls: calls.map((each, at) => ({ id: `call_${lease}_${at}`, type: "function", function: each })),
      }),
    };
    const usage = { prompt_tokens: 10, completion_tokens: 5 };
    const done = await run.send(`/runs/${run.id}/complete`, { json: { lease_id: lease, message, usage } });
    expect(done.status).toBe(200);
    return request;
  }

  it("gets each turn as an item of its own, with the results of the tools that the gateway has called", async () => {
    const run = await runWith();
    const answered = run.send("/query", { json: { prompt: QUESTION, model: "agents/m", ...SETTINGS } });
    const requests: unknown[] = [];
    for (let turn = 0; turn < 3; turn++) requests.push(await work(run));
    const answer = reply.parse((await answered).json);
    expect(answer).toMatchObject({ text: "14 letters", turns: 3, tool_calls: { length: 3 } });
    expect(answer.usage.cost).toBeCloseTo(3 * 15e-6, 12);
    expect(requests[0]).toMatchObject({ tools: [{ type: "function", function: { name: "length" } }] });
    expect(requests[2]).toMatchObject({ messages: [{ content: QUESTION }, ...answer.transcript.slice(0, -1)] });
    const { budget } = await documentOf(run);
    expect([budget.calls?.spent, budget.usd?.reserved]).toEqual([3, 0]);
  });

  it("serves items of a batch side by side, and the tasks of a graph", async () => {
    const run = await runWith();
    const json = { prompts: ["How long are a?", "How long are bb?"], model: "agents/m", ...SETTINGS };
    const batch = run.send("/batch", { json });
    for (let item = 0; item < 4; item++) await work(run);
    expect(group.parse((await batch).json).results).toEqual(["1 letters", "2 letters"]);
    const tasks = [
      { id: "a", prompt: "How long are a, bb?", tools: ["length"] },
      { id: "b", prompt: "Say {{a.output}}" },
    ];
    const dag = run.send("/dag", { json: { tasks, model: "agents/m", max_tokens: 50 } });
    for (let item = 0; item < 3; item++) await work(run);
    expect(graph.parse((await dag).json).outputs["b"]).toBe("I know: Say 3 letters");
    expect(tools.requests).toHaveLength(4);
  });
});
