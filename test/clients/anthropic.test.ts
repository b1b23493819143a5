/** Anthropic's own client, unmodified, and the bare HTTP calls of programs that speak its protocol. */
import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
} from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { tokensIn } from "../support/provider-exchange.ts";
import { all, costReader, PROVIDER_KEY, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let anthropic: Anthropic;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
  anthropic = clientOf(run);
});
afterAll(() => clients.stop());

const clientOf = ({ token }: { token: string }, maxRetries = 2) =>
  new Anthropic({ baseURL: clients.gateway.url, apiKey: token, maxRetries });
const request = (model: string, content = "say this") => ({
  ...{ model, max_tokens: 100 },
  messages: [{ role: "user" as const, content }],
});
const costOf = (usage: object): unknown => ("cost" in usage ? usage.cost : null);

describe("messages", () => {
  it("return an answer with usage and cost, and reach the provider unchanged, with its key", async () => {
    const message = await anthropic.messages.create({ ...request("claude-x"), system: "be brief" });
    expect(message.content).toMatchObject([{ type: "text", text: "say this" }]);
    expect(message.usage.output_tokens).toBe(tokensIn("say this"));
    expect(costOf(message.usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
    const [asked] = clients.provider.exchanges;
    expect(asked?.json).toEqual({ ...request("claude-x"), system: "be brief" });
    const version: unknown = expect.stringMatching(/^20\d\d-\d\d-\d\d$/);
    expect(asked?.headers).toMatchObject({ "x-api-key": PROVIDER_KEY, "anthropic-version": version });
    expect(asked?.headers).not.toHaveProperty("authorization");
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("stream, and the client assembles them", async () => {
    const stream = anthropic.messages.stream(request("claude/claude-x", "a story in several pieces"));
    const texts: string[] = [];
    stream.on("text", (piece) => texts.push(piece));
    const message = await stream.finalMessage();
    expect(texts.length).toBeGreaterThan(2);
    expect(message.content).toMatchObject([{ type: "text", text: "a story in several pieces" }]);
    expect([message.stop_reason, costOf(message.usage)]).toEqual(["end_turn", null]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("stream usage, with the cost in a comment that the client ignores", async () => {
    const { fetch, costNanoUsd } = costReader();
    const client = anthropic.withOptions({ fetch });
    const events = await all(await client.messages.create({ ...request("claude-x"), stream: true }));
    const delta = events.find((event) => event.type === "message_delta");
    expect(delta?.usage.output_tokens).toBeGreaterThan(0);
    expect(await costNanoUsd()).toBe(clients.provider.billedNanoUsd());
    expect(events.at(-1)?.type).toBe("message_stop");
  });

  it("have a request id", async () => {
    const message = await anthropic.messages.create(request("claude-x"));
    expect(message._request_id).toMatch(/^[A-Za-z0-9_-]{8,64}$/);
  });

  it("forward the client's beta header", async () => {
    const betas = ["interleaved-thinking-2025-05-14"];
    const message = await anthropic.beta.messages.create({ ...request("claude-x"), betas });
    expect(message.content).toMatchObject([{ text: "say this" }]);
    expect(clients.provider.exchanges).toMatchObject([{ headers: { "anthropic-beta": betas[0] } }]);
  });

  it("are counted at no cost", async () => {
    const { model, messages } = request("claude-x");
    expect(await anthropic.messages.countTokens({ model, messages })).toEqual({ input_tokens: 12 });
    expect(clients.provider.exchanges).toMatchObject([
      { path: "/v1/messages/count_tokens", json: { model, messages } },
    ]);
    expect((await run.budget()).calls.spent).toBe(0);
  });

  it("call tools", async () => {
    const tools = [{ name: "weather", input_schema: { type: "object" as const } }];
    const message = await anthropic.messages.create({ ...request("claude-x", "weather?"), tools });
    expect(message.content).toMatchObject([{ type: "tool_use", name: "weather", input: { city: "Zürich" } }]);
    expect(message.stop_reason).toBe("tool_use");
  });

  it("are clamped to what the budget pays for", async () => {
    const poor = await clients.openRun({ budget: { completion_tokens: 20 } });
    await clientOf(poor).messages.create(request("claude-x", "x".repeat(200)));
    expect(clients.provider.exchanges).toMatchObject([{ json: { max_tokens: 20 } }]);
    await poor.spentNanoUsd();
    expect((await poor.budget()).completion_tokens).toEqual({ limit: 20, spent: 20, reserved: 0 });
  });
});

it("models can be listed and retrieved in the form that this client reads", async () => {
  const models = await all(anthropic.models.list());
  expect(models).toContainEqual(expect.objectContaining({ type: "model", id: "up/vendor/model" }));
  expect(await anthropic.models.retrieve("claude/claude-x")).toMatchObject({ type: "model", id: "claude/claude-x" });
});

describe("an error", () => {
  const told = (error: unknown) => {
    if (!(error instanceof APIError)) return expect.fail(`not an APIError: ${String(error)}`);
    expect(JSON.stringify([error.message, error.error])).not.toContain(PROVIDER_KEY);
    return { status: error.status, type: error.type, message: error.message };
  };

  it("of the provider keeps its class, type and message", async () => {
    const error = await thrownBy(clientOf(run, 0).messages.create(request("claude/raw-overloaded")));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(told(error)).toMatchObject({
      status: 529,
      type: "overloaded_error",
      message: expect.stringContaining("Overloaded"),
    });
    const mute = await thrownBy(clientOf(run, 0).messages.create(request("claude/raw-mute")));
    expect(told(mute)).toMatchObject({ status: 529, type: "overloaded_error" });
    expect(await run.spentNanoUsd()).toBe(0);
  });

  it.each([
    ["up/echo", BadRequestError, 400, "invalid_request_error"],
    ["claude/", NotFoundError, 404, "not_found_error"],
  ])("about the model %s has its class and type", async (model, type, status, name) => {
    const error = await thrownBy(anthropic.messages.create(request(model)));
    expect(error).toBeInstanceOf(type);
    expect(told(error)).toMatchObject({ status, type: name });
  });

  it("of the gateway has a class and a type that Anthropic's clients handle", async () => {
    const forged = await thrownBy(clientOf({ token: `${run.token}x` }).messages.create(request("claude-x")));
    expect(forged).toBeInstanceOf(AuthenticationError);
    expect(told(forged)).toMatchObject({ status: 401, type: "authentication_error" });
    const narrow = clientOf(await clients.openRun({ models: ["up/*"] }));
    const forbidden = await thrownBy(narrow.messages.create(request("claude-x")));
    expect(forbidden).toBeInstanceOf(PermissionDeniedError);
    expect(told(forbidden)).toMatchObject({ status: 403, type: "permission_error" });
    const poor = clientOf(await clients.openRun({ budget: { calls: 0 } }));
    const refused = await thrownBy(poor.messages.create(request("claude-x")));
    expect(told(refused)).toMatchObject({
      ...{ status: 402, type: "billing_error" },
      message: expect.stringContaining("Global call budget exceeded: 0 spent, limit is 0"),
    });
    expect(clients.provider.exchanges).toEqual([]);
  });

  it("of a run that has ended is an authentication error, on every route", async () => {
    await run.fetch(`/runs/${run.id}/close`, { method: "POST" });
    const { model, messages } = request("claude-x");
    for (const asked of [
      () => anthropic.messages.create(request("claude-x")),
      () => anthropic.messages.countTokens({ model, messages }),
    ]) {
      const error = await thrownBy(asked());
      expect(error).toBeInstanceOf(AuthenticationError);
      expect(told(error)).toMatchObject({ status: 401, type: "authentication_error" });
    }
    expect(clients.provider.exchanges).toEqual([]);
  });

  it("about a hosted tool or an unknown cache lifetime names the field, and occurs only under a budget", async () => {
    const tools = [{ type: "web_search_20250305" as const, name: "web_search" as const }];
    const error = await thrownBy(anthropic.messages.create({ ...request("claude-x"), tools }));
    expect(told(error)).toMatchObject({ status: 400, message: expect.stringContaining("tools[0].type") });
    const marked = (lifetime: object) => {
      const mark = { type: "ephemeral" as const, ...lifetime };
      return [{ type: "text" as const, text: "be brief", cache_control: mark }];
    };
    const day = marked({ ttl: "1d" });
    const dear = await thrownBy(anthropic.messages.create({ ...request("claude-x"), system: day }));
    expect(told(dear)).toMatchObject({ status: 400, message: expect.stringContaining("system[0].cache_control.ttl") });
    expect(clients.provider.exchanges).toEqual([]);
    const free = clientOf(await clients.openRun());
    await free.messages.create({ ...request("claude-x"), system: day });
    await anthropic.messages.create({ ...request("claude-x"), system: marked({ ttl: "1h" as const }) });
    expect(clients.provider.exchanges).toHaveLength(2);
  });

  it.each([
    ["raw-error", /Overloaded/],
    ["raw-eof", /broke off/],
  ])("in the middle of a stream (%s) is thrown, and the charge is marked as an estimate", async (model, words) => {
    const stream = await anthropic.messages.create({ ...request(`claude/${model}`), stream: true });
    expect(told(await thrownBy(all(stream))).message).toMatch(words);
    expect(await run.attempts(1)).toMatchObject([{ outcome: "unknown", estimated: true }]);
    expect(await run.spentNanoUsd()).toBeGreaterThan(0);
  });
});

it("a client that leaves a stream is disconnected at the provider before the stream's end", async () => {
  const stream = await anthropic.messages.create({ ...request("claude/slow", "word ".repeat(60)), stream: true });
  for await (const event of stream) if (event.type === "content_block_delta") break;
  await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
  expect(await run.attempts(1)).toMatchObject([{ estimated: true }]);
});

it("a coding agent that sends a bearer token has its long prompts, tools and thinking relayed", async () => {
  const agent = new Anthropic({ baseURL: clients.gateway.url, apiKey: null, authToken: run.token });
  const cache_control = { type: "ephemeral" as const };
  const body = {
    ...{ model: "claude-x", max_tokens: 32_000, metadata: { user_id: "user_1_session_2" } },
    system: [{ type: "text" as const, text: "You are an agent.", cache_control }],
    messages: [{ role: "user" as const, content: [{ type: "text" as const, text: "list the files", cache_control }] }],
    thinking: { type: "enabled" as const, budget_tokens: 1_024 },
  };
  const headers = { "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14" };
  const events = await all(
    await agent.messages.create({ ...body, stream: true }, { headers, query: { beta: "true" } }),
  );
  expect(events.at(-1)?.type).toBe("message_stop");
  const [asked] = clients.provider.exchanges;
  expect(asked?.body.toString()).toBe(JSON.stringify({ ...body, stream: true }));
  expect([asked?.path, asked?.headers["anthropic-beta"]]).toEqual([
    "/v1/messages?beta=true",
    headers["anthropic-beta"],
  ]);
  expect(asked?.headers).not.toHaveProperty("authorization");
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("a program that posts with x-api-key and reads content[0].text needs only another base URL", async () => {
  const { token } = run;
  const headers = { "x-api-key": token, "anthropic-version": "2023-06-01", "content-type": "application/json" };
  const body = { model: "glm-4.7", max_tokens: 4_096, messages: [{ role: "user", content: "do the task" }] };
  const base = clients.gateway.url;
  const answer = await fetch(`${base}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
  const read = z.looseObject({ content: z.array(z.looseObject({ text: z.string() })) }).parse(await answer.json());
  expect(read.content[0]?.text).toBe("do the task");
  expect(clients.provider.exchanges[0]?.body.toString()).toBe(JSON.stringify(body));
  expect(clients.provider.exchanges[0]?.headers["x-api-key"]).toBe(PROVIDER_KEY);
});
