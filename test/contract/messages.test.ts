/** The whole message of an answer: on every way in, and everywhere an answer is kept, it is the one that `/v1` returns. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway, type GatewayRequest } from "../support/gateway.ts";
import { ARGUMENTS, LOGPROBS, SPEAKERS, wireOf, type Speaker } from "../support/speakers.ts";
import { answerOf, errorOf, type Answer, type RunAccess } from "./world.ts";

let upstream: ByteUpstream;
let gateway: Gateway;

const speakerOf = (path: string): Speaker | undefined => SPEAKERS.find(({ name }) => path.split("/")[1] === name);
const requests = (): unknown[] => upstream.calls.map(({ body }): unknown => JSON.parse(body.toString()));

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve((call, reply) => {
    const speaker = speakerOf(call.path);
    if (speaker === undefined) return reply.whole("{}", { status: 404 });
    const { stream } = z.looseObject({ stream: z.boolean().optional() }).parse(JSON.parse(call.body.toString()));
    if (stream !== true) return reply.whole(speaker.body);
    return reply.whole(wireOf(speaker), { headers: { "content-type": "text/event-stream" } });
  });
  const prices = { "*": { input: 1, output: 2 } };
  const at = ({ name, kind }: Speaker, aggregate: string) => ({
    kind,
    base_url: `${upstream.origin}/${name}${kind === "openai" ? "/v1" : ""}`,
    api_key: "secret:PROVIDER_KEY",
    prices,
    aggregate,
    file_tokens_max: 1_000,
  });
  const taped = (speaker: Speaker, mode: string) => ({
    kind: "cassette",
    mode,
    tape: speaker.name,
    upstream: at(speaker, "json"),
  });
  const UPSTREAMS = Object.fromEntries([
    ["sim", { kind: "simulated" }],
    ...SPEAKERS.flatMap((speaker) => [
      [`${speaker.name}-json`, at(speaker, "json")],
      [`${speaker.name}-stream`, at(speaker, "stream")],
      [`${speaker.name}-record`, taped(speaker, "record")],
      [`${speaker.name}-play`, taped(speaker, "replay")],
    ]),
  ]);
  gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY: "sk-provider-5f0c9d1e7ab24c60" } });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function openRun(body: object = {}): Promise<RunAccess> {
  const { id, token } = await gateway.openRun({ budget: { usd: 100 }, ...body });
  return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
}

const message = z.looseObject({ role: z.literal("assistant") });
type Message = z.infer<typeof message>;
const withMessage = z.looseObject({ message });

/** Without fields that say nothing, which streams leave out, and the positions of calls, which DeepSeek writes in either. */
function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]) => [name, said(each)] as const);
  return Object.fromEntries(entries.filter(([, each]) => each !== null && each !== "" && !isEmpty(each)));
}

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

const linesOf = ({ text }: Answer): unknown[] =>
  text.split("\n").flatMap((line): unknown[] => (line === "" ? [] : [JSON.parse(line.replace(/^data: /, ""))]));
const eventsOf = ({ text }: Answer): unknown[] =>
  text.split("\n").flatMap((line): unknown[] => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []));

const NDJSON = { accept: "application/x-ndjson" };
const item = z.looseObject({ items: z.array(withMessage) });
const task = z.looseObject({ tasks: z.object({ a: withMessage }) });
const page = z.looseObject({ data: z.array(withMessage) });

const batch = (run: RunAccess, model: string, more: object = {}, request: GatewayRequest = {}) =>
  run.send("/batch", { json: { prompts: ["hi"], model, ...more }, ...request });
const slotIn = (lines: readonly unknown[]): Message => {
  const found = lines.map((line) => withMessage.safeParse(line)).find(({ success }) => success);
  if (found?.data === undefined) throw new Error(JSON.stringify(lines));
  return found.data.message;
};

/** Each way in, with what it shows of the message of one call. */
const WAYS: Record<string, (run: RunAccess, model: string) => Promise<Message[]>> = {
  "/query": async (run, model) => {
    const { json } = await run.send("/query", { json: { prompt: "hi", model } });
    return [withMessage.parse(json).message];
  },
  "/query with an Idempotency-Key, twice": async (run, model) => {
    const request = { json: { prompt: "hi", model }, headers: { "idempotency-key": `k-${model}` } };
    const first = await run.send("/query", request);
    const again = await run.send("/query", request);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    return [first, again].map(({ json }) => withMessage.parse(json).message);
  },
  "/batch": async (run, model) => item.parse((await batch(run, model)).json).items.map((each) => each.message),
  "/batch, settled": async (run, model) => {
    const { json } = await batch(run, model, { error_style: "settled" });
    return z
      .looseObject({ results: z.array(withMessage) })
      .parse(json)
      .results.map((each) => each.message);
  },
  "/batch with equal calls": async (run, model) => {
    const { json } = await run.send("/batch", { json: { prompts: ["hi", "hi"], model, dedupe: true } });
    return item.parse(json).items.map((each) => each.message);
  },
  "/batch with samples": async (run, model) => {
    const { json } = await batch(run, model, { samples: { min: 2, max: 3, agree: 0.5, by: "exact" } });
    return item.parse(json).items.map((each) => each.message);
  },
  "/batch as lines": async (run, model) => [slotIn(linesOf(await batch(run, model, {}, { headers: NDJSON })))],
  "/batch as events": async (run, model) => [
    slotIn(eventsOf(await batch(run, model, {}, { headers: { accept: "text/event-stream" } }))),
  ],
  "/groups/:id, and its results": async (run, model) => {
    const opened = await batch(run, model, {}, { headers: { prefer: "respond-async" } });
    const path = opened.headers.get("location") ?? "";
    const ended = item.parse((await run.send(`${path}?wait_ms=20000`)).json);
    const { data } = page.parse((await run.send(`${path}/results`)).json);
    return [...ended.items, ...data].map((each) => each.message);
  },
  "/dag": async (run, model) => {
    const { json } = await run.send("/dag", { json: { tasks: [{ id: "a", prompt: "hi", model }] } });
    return [task.parse(json).tasks.a.message];
  },
  "/dag as lines": async (run, model) => {
    const json = { tasks: [{ id: "a", prompt: "hi", model }] };
    return [slotIn(linesOf(await run.send("/dag", { json, headers: NDJSON })))];
  },
};

/** What `/v1` returns for the same call; null = the provider has another form. */
async function viaV1(run: RunAccess, { kind, name }: Speaker): Promise<unknown> {
  const json = { model: `${name}-json/m`, messages: [{ role: "user", content: "hi" }], max_tokens: 100 };
  const path = kind === "openai" ? "/v1/chat/completions" : "/v1/messages";
  const { json: body } = await run.send(path, { json });
  if (kind === "anthropic") return z.looseObject({ content: z.array(z.looseObject({})) }).parse(body).content;
  return z.looseObject({ choices: z.tuple([withMessage]) }).parse(body).choices[0].message;
}

const block = z.looseObject({ type: z.string() });

/** The blocks of an Anthropic message as they are in its chat form. */
function blocksIn(chat: Message): unknown {
  const { content, content_blocks: whole, thinking_blocks: thoughts, tool_calls: calls } = chat;
  if (whole !== undefined) return whole;
  const called = z.array(
    z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }).loose(),
  );
  return [
    ...z.array(block).parse(thoughts ?? []),
    ...(content === null ? [] : [{ type: "text", text: content }]),
    ...called.parse(calls ?? []).map(({ id, function: { name, arguments: args } }): unknown => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(args),
    })),
  ];
}

/** Does the same for each provider, at once. */
const forEach = (check: (speaker: Speaker) => Promise<void>): Promise<unknown> => Promise.all(SPEAKERS.map(check));

describe("the message of each provider", () => {
  it.each(Object.keys(WAYS))("is whole on %s, whether its provider streams it or not", async (way) => {
    const run = await openRun();
    await forEach(async (speaker) => {
      const expected = await viaV1(run, speaker);
      for (const form of ["json", "stream"]) {
        const messages = (await WAYS[way]?.(run, `${speaker.name}-${form}/m`)) ?? [];
        expect(messages.length).toBeGreaterThan(0);
        for (const found of messages) {
          if (speaker.kind === "openai") expect(said(found)).toEqual(said(expected));
          else expect(blocksIn(found)).toEqual(expected);
          if (form === "json" && speaker.kind === "openai") expect(found).toEqual(expected);
        }
      }
    });
  });

  it("is written as its provider wrote it, down to the digits of its numbers", async () => {
    const run = await openRun();
    await forEach(async ({ name, kind, message: written }) => {
      const model = `${name}-json/m`;
      const answers = [await run.send("/query", { json: { prompt: "hi", model } }), await batch(run, model)];
      for (const { text } of answers) {
        if (kind === "openai") expect(text).toContain(`"message":${written}`);
        else if (written.includes("lookup")) expect(text).toContain(JSON.stringify(ARGUMENTS));
        else expect(text).toContain(`"content_blocks":${written}`);
      }
    });
  });

  it("is in replayed answers, of single calls and of groups, at no cost", async () => {
    const ask = async (run: RunAccess, model: string, epoch: string) => {
      const headers = { "x-fanout-epoch": epoch };
      const { json } = await run.send("/query", { json: { prompt: "hi", model }, headers });
      const group = await batch(run, model, { prompts: ["there"] }, { headers });
      return [withMessage.parse(json), ...item.parse(group.json).items];
    };
    const run = await openRun({ replay: "run" });
    const first = await Promise.all(SPEAKERS.map(({ name }) => ask(run, `${name}-json/m`, "one")));
    upstream.forget();
    const again = await Promise.all(SPEAKERS.map(({ name }) => ask(run, `${name}-json/m`, "two")));
    expect(again.flat().every((each) => each["replayed"] === true)).toBe(true);
    expect(again.map((each) => each.map((answer) => answer.message))).toEqual(
      first.map((each) => each.map((answer) => answer.message)),
    );
    expect(upstream.calls).toEqual([]);
  });

  it("is on a cassette, whatever a call includes of it", { tags: ["slow"] }, async () => {
    const ask = async (name: string, mode: string, include: string[]) => {
      const run = await openRun();
      const { json } = await run.send("/query", { json: { prompt: "hi", model: `${name}-${mode}/m`, include } });
      return withMessage.parse(json).message;
    };
    await forEach(async ({ name }) => {
      const recorded = await ask(name, "record", []);
      const before = upstream.calls.filter(({ path }) => path.split("/")[1] === name).length;
      expect([await ask(name, "play", []), await ask(name, "play", ["message"])]).toEqual([recorded, recorded]);
      expect(upstream.calls.filter(({ path }) => path.split("/")[1] === name).length).toBe(before);
    });
  });
});

describe("a message that is sent back", () => {
  const calls = z.array(z.looseObject({ id: z.string() })).default([]);
  const back = (found: Message) => {
    const results = calls.parse(found["tool_calls"] ?? []).map(({ id }) => ({
      role: "tool",
      tool_call_id: id,
      content: "[1, 2]",
    }));
    return [{ role: "user", content: "hi" }, found, ...results, { role: "user", content: "go on" }];
  };
  const sentTo = (name: string): string =>
    upstream.calls
      .filter(({ path }) => path.split("/")[1] === name)
      .at(-1)
      ?.body.toString() ?? "";

  it("with results of its tools is taken under a limit at the upstream that wrote it, whole", async () => {
    const run = await openRun();
    await forEach(async ({ name, kind, message: written }) => {
      // What its provider has searched for itself is not bounded by what is sent.
      if (name === "claude-search") return;
      const model = `${name}-json/m`;
      const { json } = await run.send("/query", { json: { prompt: "hi", model } });
      const found = withMessage.parse(json).message;
      const answer = await run.send("/query", { json: { messages: back(found), model, max_tokens: 100 } });
      expect(answer).toMatchObject({ status: 200 });
      const sent = z.looseObject({ messages: z.array(z.looseObject({})) }).parse(JSON.parse(sentTo(name)));
      if (kind === "openai") expect(sent.messages).toEqual(back(found));
      else expect(sentTo(name)).toContain(`{"role":"assistant","content":${written}}`);
    });
  });

  it("without a limit has the searches of its provider too; under one they are named", async () => {
    const [limited, free] = [await openRun(), await gateway.openRun()];
    const model = "claude-search-json/m";
    const { json } = await limited.send("/query", { json: { prompt: "hi", model } });
    const messages = back(withMessage.parse(json).message);
    const error = errorOf(await limited.send("/query", { json: { messages, model } }));
    expect(error.param).toMatch(/^messages\[1\]\.content_blocks\[0\]/);
    const request = { token: free.token, json: { messages, model } };
    expect(await answerOf(await gateway.fetch("/query", request))).toMatchObject({ status: 200 });
  });

  it("may come with the tools in the chat form, at both kinds", async () => {
    const run = await openRun();
    const parameters = { type: "object", properties: { zip: { type: "string" } } };
    const tools = [{ type: "function", function: { name: "lookup", description: "d", parameters } }];
    const params = { tools, tool_choice: "required" };
    for (const name of ["openai", "claude"]) {
      const answer = await run.send("/query", { json: { prompt: "hi", model: `${name}-json/m`, params } });
      expect(answer).toMatchObject({ status: 200, json: { finish_reason: "tool_calls", text: expect.any(String) } });
    }
    expect(JSON.parse(sentTo("openai"))).toMatchObject(params);
    expect(JSON.parse(sentTo("claude"))).toMatchObject({
      tools: [{ name: "lookup", description: "d", input_schema: parameters }],
      tool_choice: { type: "any" },
    });
  });
});

describe("include", () => {
  it("shows the message of a plain answer too: as a default, for one item, for a task", async () => {
    const run = await openRun();
    const model = "sim/echo";
    const plain = { role: "assistant", content: "hi" };
    const items = [{ prompt: "hi" }, { prompt: "hi", include: [] }];
    const { json: mixed } = await run.send("/batch", { json: { items, model, include: ["message"] } });
    expect(mixed).toMatchObject({ results: ["hi", "hi"], items: [{ message: plain }, { index: 1 }] });
    expect(z.looseObject({ items: z.array(z.looseObject({})) }).parse(mixed).items[1]).not.toHaveProperty("message");
    const tasks = [{ id: "a", prompt: "hi", model }];
    const { json: graph } = await run.send("/dag", { json: { tasks, options: { include: ["message"] } } });
    expect(graph).toMatchObject({ tasks: { a: { output: "hi", message: plain } }, outputs: { a: "hi" } });
    const none = await run.send("/query", { json: { prompt: "hi", model } });
    expect(none.json).not.toHaveProperty("message");
  });

  it("refuses an unknown member with the list", async () => {
    const run = await openRun();
    const error = errorOf(await run.send("/query", { json: { prompt: "hi", include: ["messages"] } }));
    expect(error).toMatchObject({ code: "invalid_request", param: "include[0]" });
    expect(error.message).toMatch(/message.*logprobs/);
  });

  it("shows log probabilities where they are asked for, as the provider wrote them", async () => {
    const run = await openRun();
    const ask = async (include: string[]) => {
      const { text, json } = await run.send("/query", { json: { prompt: "hi", model: "scored-json/m", include } });
      return { text, json };
    };
    expect((await ask([])).json).not.toHaveProperty("logprobs");
    expect((await ask(["logprobs"])).text).toContain(`"logprobs":${LOGPROBS}`);
    expect(requests().at(-1)).not.toHaveProperty("include");
  });
});
