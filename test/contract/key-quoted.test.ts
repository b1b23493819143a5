/**
 * A provider that quotes its key wherever an answer has room: in headers, fields, escapes, streams and pieces of them. The key is in no
 * reply, log, page, span or file.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startByteUpstream, type ByteReply, type ByteUpstream } from "../support/byte-upstream.ts";
import { startCollector, type Collector } from "../support/collector.ts";
import { FORMS, quotesKey } from "../support/quoted-key.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

const KEY = "sk-quoted-7c1b9A+e0f4/42d8";
const MODEL = "loud/m";

let provider: ByteUpstream;
let collector: Collector;
let gateway: Gateway;
let run: { id: string; token: string };
/** Everything that a client or an operator has seen. */
const seen: string[] = [];

beforeAll(async () => {
  provider = await startByteUpstream();
  collector = await startCollector();
  const loud = { kind: "openai", base_url: `${provider.origin}/v1`, api_key: "secret:PROVIDER_KEY", models: ["*"] };
  const UPSTREAMS = {
    loud: { ...loud, stream_usage: "edit", max_attempts: 1, prices: { "*": { input: 0, output: 0 } } },
    passes: { ...loud, max_attempts: 1, prices: { "*": { input: 0, output: 0 } } },
    claude: {
      ...{ kind: "anthropic", base_url: provider.origin, api_key: "secret:PROVIDER_KEY", models: ["*"] },
      ...{ max_attempts: 1, prices: { "*": { input: 0, output: 0 } } },
    },
  };
  const vars = { UPSTREAMS, PROVIDER_KEY: KEY, OTLP_ENDPOINT: collector.url, OTLP_CONTENT: "1" };
  gateway = await startGateway({ vars });
  run = await gateway.openRun({ default_model: MODEL, budget: { usd: 1 } });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([provider.stop(), collector.stop()]);
});

async function read(path: string, request: Parameters<Gateway["fetch"]>[1] = {}): Promise<Response> {
  const answer = await gateway.fetch(path, { token: run.token, ...request });
  const text = await answer.text();
  const headers = [...answer.headers].map((header) => header.join(": ")).join("\n");
  seen.push(`${path}\n${headers}\n${text}`);
  return new Response(text, { status: answer.status === 499 ? 400 : answer.status, headers: answer.headers });
}

const body = (message: object = { content: "fine" }, rest: object = {}, choice: object = {}) => ({
  ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", ...choice }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...rest,
});
/** Stands for the key in JSON text, where its forms are put in. */
const HERE = "QUOTED-HERE";
const json = (value: unknown, form: (key: string) => string) => JSON.stringify(value).replaceAll(HERE, form(KEY));
const chunk = (delta: object, rest: object = {}, choice: object = {}) =>
  `data: ${JSON.stringify({ ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "m" }, choices: [{ index: 0, delta, finish_reason: null, ...choice }], ...rest })}\n\n`;
const END = `${chunk({}, {}, { finish_reason: "stop" })}data: ${JSON.stringify({ id: "c", model: "m", choices: [], usage: body().usage })}\n\ndata: [DONE]\n\n`;

const chat = { model: MODEL, messages: [{ role: "user", content: "hi" }] };
const relayed = (stream = false, model = MODEL) =>
  read("/v1/chat/completions", { json: { ...chat, model, ...(stream ? { stream } : {}) } });
const query = () => read("/query", { json: { prompt: "hi" } });

const passing = () =>
  read("/v1/chat/completions", {
    json: { ...chat, model: "passes/m", stream: true, stream_options: { include_usage: true } },
  });

/** The strings of members of that name in a stream, joined: what a client makes of its deltas. */
function stringsOf(stream: string, name: string): string {
  const texts: string[] = [];
  for (const line of stream.split("\n").filter((each) => each.startsWith("data: {")))
    JSON.parse(line.slice("data: ".length), (key, value: unknown) => {
      if (key === name && typeof value === "string" && value !== "") texts.push(value);
      return value;
    });
  return texts.join("");
}

type Deltas = { path: string; json: object; event: (text: string) => string; field: string; end: string };
const NO_DELTAS: Deltas = { path: "", json: {}, event: () => "", field: "", end: "" };
const passingChat = { ...chat, model: "passes/m", stream: true, stream_options: { include_usage: true } };
const named = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const answered = {
  id: "r",
  object: "response",
  model: "m",
  status: "completed",
  output: [],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const responses = { path: "/v1/responses", json: { model: "passes/m", input: "hi", stream: true } };
const messages = {
  path: "/v1/messages",
  json: { model: "claude/m", max_tokens: 9, messages: [{ role: "user", content: "hi" }], stream: true },
  end: `${named({ type: "message_delta", ...{ delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } } })}${named({ type: "message_stop" })}`,
};
const block = (delta: object) => named({ type: "content_block_delta", ...{ index: 0, delta } });

/** Deltas of every kind, of streams that pass and of one that is edited. */
const DELTAS: Record<string, Deltas> = {
  "content of an edited chat": {
    path: "/v1/chat/completions",
    json: { ...chat, stream: true },
    event: (content) => chunk({ content }),
    field: "content",
    end: END,
  },
  "content of a chat": {
    path: "/v1/chat/completions",
    json: passingChat,
    event: (content) => chunk({ content }),
    field: "content",
    end: END,
  },
  "reasoning of a chat": {
    path: "/v1/chat/completions",
    json: passingChat,
    event: (reasoning_content) => chunk({ reasoning_content }),
    field: "reasoning_content",
    end: END,
  },
  "arguments of a chat's tool call": {
    path: "/v1/chat/completions",
    json: passingChat,
    event: (text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
    field: "arguments",
    end: END,
  },
  "text of a response": {
    ...responses,
    event: (delta) =>
      named({ type: "response.output_text.delta", ...{ item_id: "i", output_index: 0, content_index: 0, delta } }),
    field: "delta",
    end: named({ type: "response.completed", ...{ response: answered } }),
  },
  "arguments of a response's call": {
    ...responses,
    event: (delta) =>
      named({ type: "response.function_call_arguments.delta", ...{ item_id: "f", output_index: 1, delta } }),
    field: "delta",
    end: named({ type: "response.completed", ...{ response: answered } }),
  },
  "text of a message": { ...messages, event: (text) => block({ type: "text_delta", text }), field: "text" },
  "thinking of a message": {
    ...messages,
    event: (thinking) => block({ type: "thinking_delta", thinking }),
    field: "thinking",
  },
  "input of a message's tool use": {
    ...messages,
    event: (partial_json) => block({ type: "input_json_delta", partial_json }),
    field: "partial_json",
  },
};

/** Answers in each form of the key. */
async function inAllForms(ask: () => Promise<unknown>, reply: (form: (key: string) => string, to: ByteReply) => void) {
  for (const form of Object.values(FORMS)) {
    provider.serve((_, to) => reply(form, to));
    await ask();
  }
}

/** Sends a stream, in one write or cut into pieces of a few bytes. */
async function sendEvents(to: ByteReply, text: string, pieceBytes = Infinity): Promise<void> {
  to.begin({ headers: { "content-type": "text/event-stream" } });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    await to.write(bytes.subarray(at, at + Math.min(pieceBytes, bytes.length)));
    if (pieceBytes < 100) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  to.end();
}

const HEADERS = [
  "openai-model",
  "openai-version",
  "x-ratelimit-limit-requests",
  "x-request-id",
  "retry-after",
  "x-any",
];

const FIELDS: Record<string, unknown> = {
  model: body(undefined, { model: HERE }),
  id: body(undefined, { id: HERE }),
  system_fingerprint: body(undefined, { system_fingerprint: HERE }),
  service_tier: body(undefined, { service_tier: HERE }),
  finish_reason: body(undefined, {}, { finish_reason: HERE }),
  content: body({ content: `x ${HERE}` }),
  refusal: body({ content: null, refusal: HERE }),
  "arguments of a tool call": body({
    content: null,
    tool_calls: [{ id: "t", type: "function", function: { name: "f", arguments: `{"a":"${HERE}"}` } }],
  }),
  "a name of a field": body({ content: "x", [HERE]: 1 }),
  "the message of an error in a 200": { error: { message: HERE, code: 500 } },
  "the code of an error in a 200": { error: { message: "x", code: HERE } },
};

const ERRORS: Record<string, unknown> = {
  message: { error: { message: `wrong key ${HERE}` } },
  code: { error: { message: "x", code: HERE } },
  type: { error: { message: "x", type: HERE } },
  param: { error: { message: "x", param: HERE } },
  "JSON in the message": { error: { message: JSON.stringify({ error: HERE }) } },
};

const EVENTS: Record<string, string> = {
  "content of the first event": chunk({ content: HERE }) + END,
  "content of a later event": chunk({ content: "x" }) + chunk({ content: HERE }) + END,
  model: chunk({ content: "x" }, { model: HERE }) + END,
  id: chunk({ content: "x" }, { id: HERE }) + END,
  finish_reason: chunk({ content: "x" }) + END.replace('"stop"', `"${HERE}"`),
  "usage event": chunk({ content: "x" }) + END.replace('"choices":[]', `"choices":[],"x":"${HERE}"`),
  "error as the first event": `data: ${JSON.stringify({ error: { message: HERE, code: HERE } })}\n\n`,
  "error behind a delta": `${chunk({ content: "x" })}data: ${JSON.stringify({ error: { message: HERE } })}\n\n`,
  "name of an event": `event: ${HERE}\n${chunk({ content: "x" })}${END}`,
  comment: `: ${HERE}\n\n${chunk({ content: "x" })}${END}`,
  "an event without an end": `${chunk({ content: "x" })}data: {"a":"${HERE}`,
};

// The last test judges what all others have read: they run together, or not at all.
describe("a provider that quotes its key", { tags: ["slow"] }, () => {
  it.each(HEADERS)("in the header %s: /v1, streams, errors and /query do not show it", async (name) => {
    const quoting = { headers: { [name]: `v ${KEY}` } };
    provider.serve((_, to) => to.whole(JSON.stringify(body()), quoting));
    expect((await relayed()).status).toBe(200);
    await query();
    provider.serve((_, to) => to.whole('{"error":{"message":"x"}}', { status: 422, ...quoting }));
    await relayed();
    await query();
    provider.serve(async (_, to) => {
      to.begin({ headers: { "content-type": `text/event-stream; x=${KEY}`, ...quoting.headers } });
      await to.write(chunk({ content: "x" }) + END);
      to.end();
    });
    await relayed(true);
    await relayed(true, "passes/m");
  });

  it.each(Object.keys(FIELDS))("in %s, with and without escapes", async (name) => {
    const reply = (form: (key: string) => string, to: ByteReply) => to.whole(json(FIELDS[name], form));
    await inAllForms(() => relayed(), reply);
    await inAllForms(query, reply);
    await inAllForms(() => read("/batch", { json: { prompts: ["a"] } }), reply);
    // An answer of unknown length is relayed in pieces.
    await inAllForms(
      () => relayed(),
      (form, to) => {
        to.begin();
        const text = `${json(FIELDS[name], form).slice(0, -1)},"pad":"${" ".repeat(20_000)}"}`;
        void to
          .write(text.slice(0, 60))
          .then(() => to.write(text.slice(60)))
          .then(() => to.end());
      },
    );
  });

  it.each(Object.keys(ERRORS))("in the %s of an error, with and without escapes", async (name) => {
    for (const status of [400, 401, 404, 422, 429, 500]) {
      const reply = (form: (key: string) => string, to: ByteReply) => to.whole(json(ERRORS[name], form), { status });
      if (status === 429) continue;
      await inAllForms(() => relayed(), reply);
      await inAllForms(query, reply);
      if (status === 401) await gateway.fetch("/upstreams/loud/resume", { token: gateway.adminKey, method: "POST" });
    }
  });

  it.each([
    ["an HTML page", 502, "text/html"],
    ["a bare text", 400, "text/plain"],
    ["a page instead of JSON", 200, "text/html"],
  ])("in %s", async (_, status, type) => {
    provider.serve((_call, to) => to.whole(`<p>${KEY}</p>`, { status, headers: { "content-type": type } }));
    await relayed();
    await query();
  });

  it.each(Object.keys(EVENTS))("in a stream, %s: whole, and in pieces of 3 bytes", async (name) => {
    for (const [formName, form] of Object.entries(FORMS)) {
      const text = (EVENTS[name] ?? "").replaceAll(HERE, form(KEY));
      for (const pieceBytes of formName === "all escaped" ? [Infinity, 3] : [Infinity]) {
        provider.serve((_, to) => sendEvents(to, text, pieceBytes));
        await relayed(true);
      }
    }
  });

  it("in a stream, word by word: its client joins the words", async () => {
    for (const at of [1, 3, 4, 12, KEY.length - 1]) {
      const words = [KEY.slice(0, at), KEY.slice(at)].map((content) => chunk({ content }));
      provider.serve((_, to) => sendEvents(to, words.join("") + END));
      const stream = await (await relayed(true)).text();
      const joined = [...stream.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
      expect(joined).toContain("[redacted]");
      seen.push(joined);
    }
  });

  it.each(Object.keys(EVENTS))("in a stream whose client gets all events, %s: whole, and in pieces", async (name) => {
    for (const pieceBytes of [Infinity, 3]) {
      provider.serve((_, to) =>
        sendEvents(to, (EVENTS[name] ?? "").replaceAll(HERE, FORMS["all escaped"]?.(KEY) ?? ""), pieceBytes),
      );
      await passing();
    }
  });

  it.each(Object.keys(DELTAS))("in %s, cut into words and into characters, on every kind of stream", async (name) => {
    const { path, json: request, event, field, end } = DELTAS[name] ?? NO_DELTAS;
    for (const written of [KEY, KEY.replaceAll("/", "\\/")]) {
      for (const words of [[written.slice(0, 6), written.slice(6, 19), written.slice(19)], [...written]]) {
        provider.serve((_, to) => sendEvents(to, ["see ", ...words, " end"].map(event).join("") + end));
        const answer = await read(path, { json: request });
        const joined = stringsOf(await answer.text(), field);
        expect(joined).toMatch(/^see .{0,3}\[redacted\] end$/);
        seen.push(joined);
      }
    }
  });

  it("in its list of models", async () => {
    provider.serve((_, to) => to.whole(JSON.stringify({ data: [{ id: `m-${KEY}`, created: 1 }] })));
    await read("/v1/models");
  });

  it("is shown by nothing that a client, an operator or a collector reads, nor by the disk", async () => {
    for (const path of [`/runs/${run.id}/log`, "/run", "/usage", `/runs/${run.id}/log?format=text`]) await read(path);
    for (const path of ["/upstreams", "/metrics", "/runs", `/runs/${run.id}`]) {
      await read(path, { token: gateway.adminKey });
    }
    await read(`/runs/${run.id}/close`, { json: {} });
    await expect.poll(() => collector.spans().length, { timeout: 60_000, interval: 200 }).toBeGreaterThan(50);
    const { dataDir } = gateway;
    for (const name of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
      if (name.isFile())
        seen.push(`file ${name.name}\n${(await readFile(join(name.parentPath, name.name))).toString("latin1")}`);
    }
    seen.push(...collector.posts.map(({ body: post }) => `post\n${post}`));
    const quoting = seen.filter((text) => quotesKey(text, KEY)).map((text) => text.slice(0, 2_000));
    expect(seen.length).toBeGreaterThan(300);
    expect(quoting).toEqual([]);
  });
});
