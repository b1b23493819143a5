/** Cassettes: what an upstream has answered is on a tape, and a program gets it again without the upstream. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { answerOf, documentOf, errorOf, groupOf, PROVIDER_KEY, replyOf, type Answer, type RunAccess } from "./world.ts";
import { startGateway, type Gateway, type GatewayRequest } from "../support/gateway.ts";
import { startByteUpstream, type ByteReply, type ByteUpstream } from "../support/byte-upstream.ts";

const prices = { "*": { input: 1, output: 2 } };
const OTHER = "x-other-secret-8c2f";

let upstream: ByteUpstream;
let gateway: Gateway;
let made = 0;

/** Answers each request with another text, as a stream if it is for one. */
function answer(body: Buffer, reply: ByteReply): Promise<void> | void {
  const { stream, model, service_tier } = z
    .looseObject({ stream: z.boolean().optional(), model: z.string(), service_tier: z.string().optional() })
    .parse(JSON.parse(body.toString()));
  const content = `«é😀» ${(made += 1)}`;
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const more = { model, ...(service_tier === undefined ? {} : { service_tier }) };
  if (stream !== true) {
    const message = { role: "assistant", content };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    const headers = { "content-type": "application/json", "openai-processing-ms": "1" };
    return reply.whole(JSON.stringify({ id: `c-${made}`, ...more, choices, usage }), { headers });
  }
  return streamed(reply, [
    ...[...content].map((delta) => ({ choices: [{ index: 0, delta: { content: delta } }], ...more })),
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...more },
    { choices: [], usage, ...more },
  ]);
}

async function streamed(reply: ByteReply, events: readonly unknown[]): Promise<void> {
  reply.begin({ headers: { "content-type": "text/event-stream" } });
  for (const event of events) await reply.write(`data: ${JSON.stringify(event)}\n\n`);
  await reply.write("data: [DONE]\n\n");
  reply.end();
}

const cassette = (mode: string, tape: string, more: object = {}): object => {
  const inner = { kind: "openai", base_url: `${upstream.origin}/v1`, api_key: "secret:PROVIDER_KEY", prices, ...more };
  return { kind: "cassette", mode, tape, upstream: inner };
};

beforeAll(async () => {
  upstream = await startByteUpstream();
  const headers = { "x-other": OTHER };
  const UPSTREAMS = {
    rec: cassette("record", "demo", { headers }),
    play: cassette("replay", "demo"),
    mix: cassette("hybrid", "demo"),
    other: cassette("replay", "other"),
    simrec: { kind: "cassette", mode: "record", tape: "sim", upstream: { kind: "simulated" } },
    simplay: { kind: "cassette", mode: "replay", tape: "sim", upstream: { kind: "simulated" } },
    claude: { ...cassette("record", "claude", { kind: "anthropic", base_url: upstream.origin }) },
    claudeplay: { ...cassette("replay", "claude", { kind: "anthropic", base_url: upstream.origin }) },
  };
  gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY } });
});
beforeEach(async () => {
  upstream.serve(({ body }, reply) => answer(body, reply));
  await operator("/cassettes/demo", { method: "DELETE" });
  await operator("/cassettes/sim", { method: "DELETE" });
  upstream.forget();
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const operator = async (path: string, request: GatewayRequest = {}): Promise<Answer> =>
  answerOf(await gateway.fetch(path, { token: gateway.adminKey, ...request }));
async function openRun(body: Record<string, unknown> = {}): Promise<RunAccess> {
  const { id, token } = await gateway.openRun({ budget: { usd: 1 }, max_parallel: 16, ...body });
  return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
}
const tapeOf = async (name = "demo"): Promise<Record<string, unknown>[]> =>
  (await operator(`/cassettes/${name}/exchanges`)).text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => z.record(z.string(), z.unknown()).parse(JSON.parse(line)));
const facts = z.looseObject({ exchanges: z.int(), bytes: z.int(), unrecorded: z.int() });
const factsOf = async (name = "demo") => facts.parse((await operator(`/cassettes/${name}`)).json);

describe("an upstream that records, then one that replays its tape", () => {
  it("gives /query and /batch the same answers and charges, whatever the order, without the upstream", async () => {
    const first = await openRun({ default_model: "rec/m" });
    const alone = replyOf(await first.send("/query", { json: { prompt: "alone", max_tokens: 50 } }));
    const many = groupOf(await first.send("/batch", { json: { prompts: ["a", "b", "c"] } }));
    expect(upstream.calls).toHaveLength(4);
    const second = await openRun({ default_model: "play/m" });
    const again = groupOf(await second.send("/batch", { json: { prompts: ["c", "b", "a"] } }));
    const asMessages = { messages: [{ role: "user", content: "alone" }], max_tokens: 50 };
    const aloneAgain = replyOf(await second.send("/query", { json: asMessages }));
    expect([again.results, again.usage]).toEqual([many.results.toReversed(), many.usage]);
    expect([aloneAgain.text, aloneAgain.usage]).toEqual([alone.text, alone.usage]);
    expect((await documentOf(second)).budget).toEqual((await documentOf(first)).budget);
    expect(upstream.calls).toHaveLength(4);
  });

  it("gives the tasks of a graph the same outputs", async () => {
    const tasks = [
      { id: "one", prompt: "start" },
      { id: "two", prompt: "go on from {{one}}" },
    ];
    const graph = z.looseObject({ outputs: z.record(z.string(), z.unknown()) });
    const outputs = async (model: string): Promise<Record<string, unknown>> => {
      const run = await openRun({ default_model: model });
      const answer = await run.send("/dag", { json: { tasks } });
      return graph.parse(answer.json).outputs;
    };
    const first = await outputs("rec/m");
    expect([Object.keys(first), upstream.calls.length]).toEqual([["one", "two"], 2]);
    expect([await outputs("play/m"), upstream.calls.length]).toEqual([first, 2]);
  });

  it.each([
    ["chat completions", "/v1/chat/completions", false],
    ["chat completions as a stream", "/v1/chat/completions", true],
  ])("gives %s of /v1 byte for byte, tools and tier among them", async (_, path, stream) => {
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
    const body = { messages: [{ role: "user", content: "hi" }], stream, tools, service_tier: "flex" };
    const send = async (model: string): Promise<Answer> => {
      const run = await openRun();
      return await run.send(path, { json: { model, ...body } });
    };
    const first = await send("rec/m");
    const again = await send("play/m");
    expect([first.status, first.text]).toEqual([200, expect.stringContaining('"service_tier":"flex"')]);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"));
    // What the provider said of itself then is of no use now.
    expect(again.headers.get("openai-processing-ms")).toBeNull();
    expect(upstream.calls).toHaveLength(1);
  });

  it("keeps a stream in the pieces in which it came", async () => {
    const run = await openRun();
    const json = { model: "rec/m", messages: [{ role: "user", content: "pieces" }], stream: true };
    const { text } = await run.send("/v1/chat/completions", { json });
    await expect.poll(async () => (await tapeOf()).length).toBe(1);
    const [exchange] = await tapeOf();
    const { chunks } = z.object({ answer: z.object({ chunks: z.array(z.string()) }) }).parse(exchange).answer;
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.join("")).toContain("[DONE]");
    expect(text).toContain("data: ");
  });

  it("gives Anthropic's messages again", async () => {
    upstream.serve((_, reply) => {
      const content = [{ type: "text", text: "hello" }];
      const usage = { input_tokens: 3, output_tokens: 2 };
      const message = {
        id: "m",
        type: "message",
        role: "assistant",
        model: "c",
        content,
        stop_reason: "end_turn",
        usage,
      };
      reply.whole(JSON.stringify(message), { headers: { "content-type": "application/json" } });
    });
    const run = await openRun();
    const send = (model: string): Promise<Answer> =>
      run.send("/v1/messages", { json: { model, max_tokens: 9, messages: [{ role: "user", content: "x" }] } });
    const first = await send("claude/c");
    expect([first.status, (await send("claudeplay/c")).text]).toEqual([200, first.text]);
    expect(upstream.calls).toHaveLength(1);
    const count = await run.send("/v1/messages/count_tokens", { json: { model: "claudeplay/c", messages: [] } });
    expect([count.status, count.text]).toEqual([422, expect.stringContaining("cassette_miss")]);
    expect(upstream.calls).toHaveLength(1);
  });

  it("records the simulated upstream, so that a demo needs no key at all", async () => {
    const run = await openRun();
    const query = (model: string, prompt: string): Promise<Answer> => run.send("/query", { json: { model, prompt } });
    const first = replyOf(await query("simrec/echo", "demo"));
    expect(replyOf(await query("simplay/echo", "demo")).text).toBe(first.text);
    expect(errorOf(await query("simplay/echo", "another")).code).toBe("cassette_miss");
  });
});

describe("equal calls", () => {
  it("stay samples: the n-th of a run gets the n-th answer, and one more is a miss", async () => {
    const first = await openRun({ default_model: "rec/m" });
    const recorded = groupOf(await first.send("/batch", { json: { prompts: ["same", "same", "same"] } })).results;
    expect(new Set(recorded).size).toBe(3);
    for (let round = 0; round < 2; round += 1) {
      const run = await openRun({ default_model: "play/m" });
      const again = groupOf(await run.send("/batch", { json: { prompts: ["same", "same", "same"] } })).results;
      expect(again.toSorted()).toEqual(recorded.toSorted());
      const miss = errorOf(await run.send("/query", { json: { prompt: "same" } }));
      expect(miss.message).toBe(
        'the tape "demo" has 3 answers to this request, and the run has already received all of them',
      );
    }
  });

  it("of a run and its child runs count together", async () => {
    const ask = async (model: string): Promise<string[]> => {
      const parent = await openRun({ default_model: model });
      const texts: string[] = [replyOf(await parent.send("/query", { json: { prompt: "same" } })).text];
      for (let child = 0; child < 2; child += 1) {
        const opened = await parent.send("/runs", { json: { budget: { usd: 0.1 } } });
        const { token } = z.looseObject({ token: z.string() }).parse(opened.json);
        const json = { prompt: "same" };
        texts.push(replyOf(await answerOf(await gateway.fetch("/query", { token, json }))).text);
      }
      return texts;
    };
    const first = await ask("rec/m");
    expect([new Set(first).size, await ask("play/m")]).toEqual([3, first]);
  });

  it("are recorded anew in place of what an earlier run has recorded", async () => {
    const record = async (prompts: string[]): Promise<readonly unknown[]> => {
      const run = await openRun({ default_model: "rec/m" });
      return groupOf(await run.send("/batch", { json: { prompts } })).results;
    };
    await record(["same", "same"]);
    const [fresh] = await record(["same"]);
    const run = await openRun({ default_model: "play/m" });
    expect(replyOf(await run.send("/query", { json: { prompt: "same" } })).text).toBe(fresh);
    expect((await factsOf()).exchanges).toBe(2);
  });
});

describe("a request that is not on the tape", () => {
  it("names the nearest recorded one, and where it differs, and is not sent", async () => {
    const first = await openRun({ default_model: "rec/m" });
    const long = (year: number): string => `${"Read this report with care. ".repeat(40)} Who won in ${year}, and why?`;
    const messages = (year: number) => [{ role: "user", content: long(year) }];
    await first.send("/query", { json: { prompt: "Something else altogether" } });
    await first.send("/query", { json: { messages: messages(1999), max_tokens: 50 } });
    const run = await openRun({ default_model: "play/m" });
    const answer = await run.send("/query", { json: { messages: messages(2001), max_tokens: 60 } });
    expect(answer.status).toBe(422);
    const { code, message, tape, nearest, differences, retryable } = errorOf(answer);
    expect({ code, tape, nearest, retryable }).toEqual({
      code: "cassette_miss",
      tape: "demo",
      nearest: 2,
      retryable: false,
    });
    const where = [
      expect.stringMatching(
        /^body\.messages\[0\]\.content: recorded "….*won in 1999, and.*", requested "….*won in 2001, and.*"$/,
      ),
      'body.max_tokens: recorded "50", requested "60"',
    ];
    expect(differences).toEqual(expect.arrayContaining(where));
    expect(message).toContain("the nearest recorded request is number 2, which differs in");
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect([upstream.calls.length, (await documentOf(run)).budget.usd.spent]).toEqual([2, 0]);
  });

  it("is an error of its slot in a batch, and of /v1 in the client's form", async () => {
    const run = await openRun({ default_model: "play/m" });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["none"] } }));
    expect([group.status, group.errors[0]?.code]).toEqual(["failed", "cassette_miss"]);
    const v1 = await run.send("/v1/chat/completions", { json: { model: "play/m", messages: [] } });
    expect(errorOf(v1)).toMatchObject({ code: "cassette_miss", message: expect.stringContaining("the tape is empty") });
  });

  it("is sent and recorded in the mode hybrid, once", async () => {
    const texts: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const run = await openRun({ default_model: "mix/m" });
      texts.push(replyOf(await run.send("/query", { json: { prompt: "hybrid" } })).text);
    }
    expect([texts[1], upstream.calls.length]).toEqual([texts[0], 1]);
  });

  it("of another number than JavaScript can hold is another request", async () => {
    const run = await openRun();
    const send = (model: string, seed: string): Promise<Answer> =>
      run.send("/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: `{"model":"${model}","messages":[{"role":"user","content":"n"}],"seed":${seed}}`,
      });
    await send("rec/m", "9007199254740993");
    expect((await send("play/m", "9007199254740992")).status).toBe(422);
    expect((await send("play/m", "9007199254740993")).status).toBe(200);
  });
});

describe("what is on a tape", () => {
  it("is neither a key nor a failure that passes, but a refusal that the request meets each time", async () => {
    const run = await openRun();
    const send = (model: string, prompt: string): Promise<Answer> =>
      run.send("/query", { json: { model, prompt, max_attempts: 1 } });
    upstream.serve((_, reply) =>
      reply.whole(JSON.stringify({ error: { message: `no: ${PROVIDER_KEY} ${OTHER}` } }), { status: 400 }),
    );
    const refused = await send("rec/m", `my key is ${PROVIDER_KEY}`).catch(() => null);
    upstream.serve((_, reply) => reply.whole("{}", { status: 503 }));
    await send("rec/m", "passes");
    const { text } = await operator("/cassettes/demo/exchanges");
    expect(text.trimEnd().split("\n")).toHaveLength(1);
    expect(text).not.toContain(OTHER);
    const again = await send("play/m", `my key is ${PROVIDER_KEY}`);
    expect([again.status, errorOf(again).message]).toEqual([
      refused?.status,
      refused && errorOf(refused).message.replaceAll("rec", "play"),
    ]);
  });

  it("is not an answer that is too long for it, which its client gets nevertheless", async () => {
    const run = await openRun({ budget: { usd: 100 } });
    const content = "x".repeat(1_600_000);
    upstream.serve((_, reply) => {
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
      reply.whole(JSON.stringify({ choices, usage }), { headers: { "content-type": "application/json" } });
    });
    expect(replyOf(await run.send("/query", { json: { model: "rec/m", prompt: "long" } })).text).toHaveLength(
      1_600_000,
    );
    expect(await factsOf()).toMatchObject({ exchanges: 0, unrecorded: 1 });
  });

  it("of a long request is its hash and its beginning, and finds it again", async () => {
    const run = await openRun({ budget: { usd: 100 } });
    const prompt = "word ".repeat(60_000);
    const first = replyOf(await run.send("/query", { json: { model: "rec/m", prompt } }));
    const { text } = await operator("/cassettes/demo/exchanges");
    expect(text.length).toBeLessThan(5_000);
    await operator("/cassettes/demo", { method: "PUT", body: text });
    expect(replyOf(await run.send("/query", { json: { model: "play/m", prompt } })).text).toBe(first.text);
  });
});

describe("the file of a tape", () => {
  it("is loaded elsewhere, also after it was edited, and gives the same answers", async () => {
    const run = await openRun({ default_model: "rec/m" });
    const first = groupOf(await run.send("/batch", { json: { prompts: ["same", "same", "third"] } })).results;
    const file = (await operator("/cassettes/demo/exchanges")).text;
    const edited = file.replace('"third"', '"3rd"');
    const loaded = await operator("/cassettes/other", { method: "PUT", body: `${edited}\n` });
    expect([loaded.status, facts.parse(loaded.json)]).toEqual([
      200,
      expect.objectContaining({ exchanges: 3, bytes: Buffer.byteLength(edited) }),
    ]);
    const second = await openRun({ default_model: "other/m" });
    const again = groupOf(await second.send("/batch", { json: { prompts: ["same", "same", "3rd"] } })).results;
    expect(again.toSorted()).toEqual(first.toSorted());
    expect((await operator("/cassettes/other/exchanges")).text).toBe(edited);
  });

  it("is refused whole if a line is wrong, and the tape stays", async () => {
    const run = await openRun({ default_model: "rec/m" });
    await run.send("/query", { json: { prompt: "kept" } });
    const file = (await operator("/cassettes/demo/exchanges")).text;
    const wrong = [
      [`${file}{"request":1}\n`, "line 2"],
      ["nonsense", "line 1"],
      [file.replace('"chunks":[', '"chunks":[1,'), "line 1"],
      [file.replace('"status":200', '"status":101'), "line 1"],
      [file.replace("application/json", "a\\r\\nset-cookie: x"), "line 1"],
    ] as const;
    for (const [body, where] of wrong) {
      const refused = await operator("/cassettes/demo", { method: "PUT", body });
      expect([refused.status, errorOf(refused).param]).toEqual([400, where]);
    }
    expect((await operator("/cassettes/demo/exchanges")).text).toBe(file);
  });
});

describe("tapes are the operator's", () => {
  it("lists those that the configuration names, and reaches no others by any name", async () => {
    const { json } = await operator("/cassettes");
    const list = z.object({ data: z.array(z.looseObject({ tape: z.string(), upstreams: z.array(z.unknown()) })) });
    const { data } = list.parse(json);
    expect(data.map(({ tape }) => tape)).toEqual(["demo", "other", "sim", "claude"]);
    const upstreams = [
      { name: "rec", mode: "record" },
      { name: "play", mode: "replay" },
      { name: "mix", mode: "hybrid" },
    ];
    expect(data[0]?.upstreams).toEqual(upstreams);
    for (const name of ["nothing", "..%2Fdemo", "demo%00", "__proto__", "DEMO", "demo%2F..", "x".repeat(5_000)]) {
      expect((await operator(`/cassettes/${name}`)).status).toBe(404);
      expect((await operator(`/cassettes/${name}`, { method: "PUT", body: "" })).status).toBe(404);
    }
  });

  it("shows none of it to a run's token", async () => {
    const run = await openRun();
    for (const [method, path] of [
      ["GET", "/cassettes"],
      ["GET", "/cassettes/demo"],
      ["GET", "/cassettes/demo/exchanges"],
      ["PUT", "/cassettes/demo"],
      ["DELETE", "/cassettes/demo"],
    ] as const) {
      const answer = await run.send(path, { method, ...(method === "PUT" ? { body: "" } : {}) });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
    }
  });

  it("does not let a run use a tape whose models its operator has not given it", async () => {
    const run = await openRun({ models: ["rec/*"] });
    const answer = await run.send("/query", { json: { model: "play/m", prompt: "x" } });
    expect([answer.status, errorOf(answer).code]).toEqual([403, "model_not_allowed"]);
  });

  it("needs no key in the mode replay, and names what is wrong elsewhere", { tags: ["slow"] }, async () => {
    const inner = { kind: "openai", base_url: "https://example.com/v1", api_key: "secret:NOT_SET" };
    const start = async (fields: object) => {
      const own = await startGateway({ vars: { UPSTREAMS: { a: { kind: "cassette", ...fields } } } });
      onTestFinished(() => own.stop());
      const answer = await answerOf(await own.fetch("/cassettes", { token: own.adminKey }));
      return { status: answer.status, message: answer.status === 200 ? "" : errorOf(answer).message };
    };
    expect((await start({ upstream: inner })).status).toBe(200);
    expect((await start({ mode: "record", upstream: inner })).message).toContain("UPSTREAMS.a.upstream.api_key");
  });
});
