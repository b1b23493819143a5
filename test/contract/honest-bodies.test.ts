/** A limit lets honest programs through: every body as SDKs, agents and servers document it, and what it becomes upstream. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startByteUpstream, type ByteCall, type ByteReply, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { extraBodies, honestBodies, ROUTES, type RecordedBody } from "../support/honest-bodies/read.ts";

const HONEST = honestBodies();
/** All limits bind, and are wide enough for any of these bodies. */
const BUDGET = {
  usd: 1_000,
  calls: 10_000,
  prompt_tokens: 100_000_000,
  completion_tokens: 100_000_000,
  new_tokens: 200_000_000,
};
const PRICES = { "*": { input: 1, cached_input: 0.1, output: 2 } };
const CAPS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

let upstream: ByteUpstream;
let gateway: Gateway;
let token: string;

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve(answer);
  const bounds = { media_tokens_max: 2_000, file_tokens_max: 20_000, prices: PRICES, max_attempts: 1 };
  const anthropic = { kind: "anthropic", base_url: upstream.origin, models: ["claude-*"], ...bounds };
  const openai = { kind: "openai", base_url: `${upstream.origin}/v1`, models: ["*"], ...bounds };
  gateway = await startGateway({ vars: { DEFAULT_MODEL: "small", UPSTREAMS: { first: anthropic, second: openai } } });
  token = (await gateway.openRun({ budget: BUDGET })).token;
});

afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const post = (path: string, json: unknown) => gateway.fetch(path, { token, json });

describe("a run with limits in all dimensions", () => {
  it("is tested with at least 300 honest bodies, each with a unique name", () => {
    expect(HONEST.length).toBeGreaterThanOrEqual(300);
    expect(new Set(HONEST.map(({ source, name }) => `${source}: ${name}`)).size).toBe(HONEST.length);
  });

  it.each(HONEST.map((one) => [`${one.source}: ${one.name}`, one] as const))("answers %s", async (_, one) => {
    upstream.forget();
    const response = await post(ROUTES[one.family], one.body);
    const text = await response.text();
    expect(response.status, text.slice(0, 500)).toBe(200);
    if (one.family === "batch") expect(JSON.parse(text)).toMatchObject({ status: "completed" });
    const sent = upstream.calls.map(({ body }): unknown => JSON.parse(body.toString("utf8")));
    if (!ROUTES[one.family].startsWith("/v1/")) return expectSettings(one, sent);
    expect(sent).toHaveLength(1);
    expect(withoutEdits(sent[0])).toEqual(withoutEdits(one.body));
    expectCap(one, sent[0]);
  });

  it.each(extraBodies().map((one) => [one.name, one] as const))("refuses %s and names the field", async (_, one) => {
    upstream.forget();
    const response = await post(ROUTES[one.family], one.body);
    const text = await response.text();
    // In a batch it is the slot that is refused.
    if (one.family === "batch") expect(JSON.parse(text)).toMatchObject({ errors: [{ code: "invalid_request" }] });
    else expect(response.status, text.slice(0, 500)).toBe(400);
    expect(text).toContain(one.field);
    expect(upstream.calls).toHaveLength(0);
  });
});

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What docs/v1.md lists as changed on the way: the cap, and that usage is asked for. */
function withoutEdits(body: unknown): unknown {
  if (!isObject(body)) return body;
  const rest = Object.fromEntries(Object.entries(body).filter(([name]) => !CAPS.includes(name)));
  const { stream_options: options, ...others } = rest;
  if (!isObject(options)) return others;
  const { include_usage: _, ...kept } = options;
  return Object.keys(kept).length === 0 ? others : { ...others, stream_options: kept };
}

/** One spelling of the cap reaches the upstream; with the client's value, if it named one. */
function expectCap(one: RecordedBody, sent: unknown): void {
  if (one.family === "embeddings" || !isObject(sent)) return;
  const caps = Object.entries(sent).filter(([name]) => CAPS.includes(name));
  expect(caps).toHaveLength(1);
  const asked = CAPS.map((name) => one.body[name]).find((cap) => typeof cap === "number");
  if (asked === undefined) expect(caps[0]?.[1]).toBeGreaterThan(0);
  else expect(caps[0]?.[1]).toBe(asked);
}

/** Of calls that the gateway builds itself: the fields of `params` and the settings arrive as they were given. */
function expectSettings({ body }: RecordedBody, sent: readonly unknown[]): void {
  expect(sent.length).toBeGreaterThan(0);
  const settings = isObject(body["params"]) ? body["params"] : {};
  for (const request of sent) expect(request).toMatchObject(settings);
}

function answer(call: ByteCall, reply: ByteReply): void | Promise<void> {
  const body: unknown = JSON.parse(call.body.toString("utf8"));
  const streams = isObject(body) && body["stream"] === true;
  const path = call.path.split("?", 1)[0] ?? "";
  const events = STREAMS[path];
  if (streams && events !== undefined) {
    return reply.whole(events, { headers: { "content-type": "text/event-stream" } });
  }
  reply.whole(JSON.stringify(ANSWERS[path] ?? {}), { headers: { "content-type": "application/json" } });
}

const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const MESSAGE = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };
const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "m",
  output: [
    {
      type: "message",
      id: "msg_1",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "Yes.", annotations: [] }],
    },
  ],
  usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
};

const ANSWERS: Record<string, unknown> = {
  "/v1/chat/completions": {
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
    usage: USAGE,
  },
  "/v1/completions": {
    id: "c1",
    object: "text_completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, text: "Yes.", finish_reason: "stop", logprobs: null }],
    usage: USAGE,
  },
  "/v1/responses": RESPONSE,
  "/v1/messages": {
    ...MESSAGE,
    content: [{ type: "text", text: "Yes." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 9, output_tokens: 2 },
  },
  "/v1/embeddings": {
    object: "list",
    model: "m",
    data: [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }],
    usage: { prompt_tokens: 3, total_tokens: 3 },
  },
};

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (type: string, fields: Json = {}): string => `event: ${type}\n${data({ type, ...fields })}`;
const chunk = (object: string, fields: Json): string => data({ id: "c1", object, created: 1, model: "m", ...fields });

const STREAMS: Record<string, string> = {
  "/v1/chat/completions": [
    chunk("chat.completion.chunk", {
      choices: [{ index: 0, delta: { role: "assistant", content: "Yes." }, finish_reason: null }],
    }),
    chunk("chat.completion.chunk", { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    chunk("chat.completion.chunk", { choices: [], usage: USAGE }),
    "data: [DONE]\n\n",
  ].join(""),
  "/v1/completions": [
    chunk("text_completion", { choices: [{ index: 0, text: "Yes.", finish_reason: "stop" }] }),
    chunk("text_completion", { choices: [], usage: USAGE }),
    "data: [DONE]\n\n",
  ].join(""),
  "/v1/responses": [
    named("response.created", { response: { ...RESPONSE, status: "in_progress", output: [], usage: null } }),
    named("response.completed", { response: RESPONSE }),
  ].join(""),
  "/v1/messages": [
    named("message_start", {
      message: { ...MESSAGE, content: [], stop_reason: null, usage: { input_tokens: 9, output_tokens: 1 } },
    }),
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Yes." } }),
    named("content_block_stop", { index: 0 }),
    named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
    named("message_stop"),
  ].join(""),
};
