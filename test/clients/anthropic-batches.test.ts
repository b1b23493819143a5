/** Anthropic's own client with the message batches of the gateway: created, polled, read, listed, cancelled and deleted, also by Python's. */
import Anthropic, { BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import type {
  BatchCreateParams,
  MessageBatch,
  MessageBatchIndividualResponse,
} from "@anthropic-ai/sdk/resources/messages";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Gateway } from "../support/gateway.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { MESSAGE_USD, MessageBatchProvider, REFUSED_WORD } from "../support/message-batch-provider.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";
import { missingEnvironment, pythonOf } from "./python/environments.ts";
import { all, thrownBy } from "./world.ts";

const KEY = "sk-ant-provider-27d1";
const named = z.looseObject({ id: z.string() });
const provider = new MessageBatchProvider(KEY);
let gateway: Gateway;

beforeAll(async () => {
  await provider.start();
  const up = {
    kind: "anthropic",
    base_url: provider.origin,
    api_key: KEY,
    models: ["claude-*"],
    prices: { "*": { input: MESSAGE_USD.live, output: MESSAGE_USD.live } },
  };
  const rates = (usd: number) => ({ input: usd, output: usd });
  const prices = { "*": { ...rates(MESSAGE_USD.live), batch: rates(MESSAGE_USD.batch) } };
  const sold = { ...up, models: ["sold-*"], prices, batch: { poll_ms: 100 } };
  gateway = await startR2Gateway({ vars: { UPSTREAMS: { sim: { kind: "simulated" }, up, sold } } });
});
beforeEach(() => provider.reset());
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

async function open(body: Record<string, unknown> = {}): Promise<{ id: string; token: string; client: Anthropic }> {
  const { id, token } = await gateway.openRun(body);
  return { id, token, client: new Anthropic({ baseURL: gateway.url, apiKey: token, maxRetries: 0 }) };
}

const request = (custom_id: string, content: string, model = "claude-x"): BatchCreateParams.Request => ({
  custom_id,
  params: { model, max_tokens: 20, messages: [{ role: "user", content }] },
});

async function ended(client: Anthropic, { id }: Pick<MessageBatch, "id">): Promise<MessageBatch> {
  const status = async () => (await client.messages.batches.retrieve(id)).processing_status;
  await expect.poll(status, { timeout: 60_000 }).toBe("ended");
  return await client.messages.batches.retrieve(id);
}

/** The results by their `custom_id`. */
async function resultsOf(client: Anthropic, { id }: Pick<MessageBatch, "id">) {
  const results = await all<MessageBatchIndividualResponse>(await client.messages.batches.results(id));
  return new Map(results.map(({ custom_id, result }) => [custom_id, result]));
}

describe("a message batch", () => {
  it("is created, ends, and has a result for each request", async () => {
    const { client } = await open({ budget: { usd: 1 } });
    const requests = [request("a", "one"), request("b", "two"), request("s", "three", "sim/echo")];
    const created = await client.messages.batches.create({ requests });
    expect(created).toMatchObject({
      type: "message_batch",
      processing_status: "in_progress",
      request_counts: { processing: 3, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      ended_at: null,
      results_url: null,
      cancel_initiated_at: null,
      archived_at: null,
    });
    expect(Date.parse(created.expires_at) - Date.parse(created.created_at)).toBe(86_400_000);
    const batch = await ended(client, created);
    expect(batch.request_counts).toEqual({ processing: 0, succeeded: 3, errored: 0, canceled: 0, expired: 0 });
    const results = await resultsOf(client, batch);
    expect([...results.keys()].toSorted()).toEqual(["a", "b", "s"]);
    expect(results.get("a")).toMatchObject({
      type: "succeeded",
      message: {
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "one" }],
        usage: { input_tokens: 1 },
      },
    });
    expect(results.get("s")).toMatchObject({ type: "succeeded", message: { content: [{ text: "three" }] } });
    expect(provider.live.toSorted()).toEqual(["one", "two"]);
  });

  it("goes through its provider's own batches at half the price, where it sells them", async () => {
    const { client, id, token } = await open({ budget: { usd: 1 } });
    const before = provider.billUsd();
    const requests = [request("a", "one", "sold-x"), request("b", REFUSED_WORD, "sold-x"), request("live", "two")];
    const batch = await ended(client, await client.messages.batches.create({ requests }));
    expect(batch.request_counts).toMatchObject({ succeeded: 2, errored: 1 });
    expect([provider.batches.map((each) => each.requests.length), provider.live]).toEqual([[2], ["two"]]);
    const results = await resultsOf(client, batch);
    expect(results.get("a")).toMatchObject({ type: "succeeded", message: { content: [{ text: "one" }] } });
    expect(results.get("b")).toMatchObject({ type: "errored", error: { error: { message: REFUSED_WORD } } });
    const spent: unknown = await (await gateway.fetch(`/runs/${id}`, { token })).json();
    // Two tokens at the price of a batch and two at that of a live call.
    expect(provider.billUsd() - before).toBeCloseTo(6e-6, 12);
    expect(spent).toMatchObject({ budget: { usd: { spent: 6e-6, reserved: 0 } } });
  });

  it("is sent live at once where its client asks for that", async () => {
    const { client, token } = await open({ budget: { usd: 1 } });
    const json = { requests: [request("a", "one", "sold-x")], service_tier: "default" };
    const created = named.parse(await (await gateway.fetch("/v1/messages/batches", { token, json })).json());
    expect((await ended(client, created)).request_counts).toMatchObject({ succeeded: 1 });
    expect([provider.batches.length, provider.live]).toEqual([0, ["one"]]);
  });

  it("has an error with its type for each request that failed, and the others are not affected", async () => {
    const { client, token } = await open({ budget: { usd: 1 } });
    const streamed = { ...request("streamed", "no"), params: { ...request("", "no").params, stream: true } };
    const requests = [
      request("good", "one"),
      request("refused", `is ${REFUSED_WORD}`),
      request("unknown", "two", "nobody/has-it"),
      { custom_id: "empty", params: { model: "claude-x", max_tokens: 5, messages: [] } },
      streamed,
    ];
    // Its types refuse the request for a stream.
    const created = await gateway.fetch("/v1/messages/batches", { token, json: { requests } });
    const batch = await ended(client, named.parse(await created.json()));
    expect(batch.request_counts).toEqual({ processing: 0, succeeded: 1, errored: 4, canceled: 0, expired: 0 });
    const results = await resultsOf(client, batch);
    expect(results.get("good")?.type).toBe("succeeded");
    // The provider's own words.
    expect(results.get("refused")).toEqual({
      type: "errored",
      error: {
        type: "error",
        error: { type: "invalid_request_error", message: REFUSED_WORD },
        request_id: "req_test",
      },
    });
    const errorOf = (id: string): unknown => {
      const result = results.get(id);
      return result?.type === "errored" ? result.error : null;
    };
    expect(errorOf("unknown")).toMatchObject({
      type: "error",
      error: { type: "not_found_error", code: "model_not_found" },
    });
    expect(errorOf("empty")).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(errorOf("streamed")).toMatchObject({ error: { type: "invalid_request_error", param: "body.stream" } });
    expect(provider.live.toSorted()).toEqual([`is ${REFUSED_WORD}`, "one"].toSorted());
  });

  it("stays within the run's budget: what it does not cover is an invalid request", async () => {
    const { client, id, token } = await open({ budget: { calls: 2 }, max_parallel: 1 });
    const requests = ["a", "b", "c", "d"].map((name) => request(name, name));
    const batch = await ended(client, await client.messages.batches.create({ requests }));
    expect(batch.request_counts).toMatchObject({ succeeded: 2, errored: 2 });
    const errors = [...(await resultsOf(client, batch)).values()].filter(({ type }) => type === "errored");
    expect(errors).toMatchObject(
      [0, 1].map(() => ({ error: { error: { type: "invalid_request_error", code: "budget_exhausted" } } })),
    );
    const budget: unknown = await (await gateway.fetch(`/runs/${id}`, { token })).json();
    expect(budget).toMatchObject({ budget: { calls: { spent: 2, reserved: 0 } } });
  });

  it("that is canceled ends with the calls in flight, and the rest is canceled", async () => {
    provider.behave({ liveMs: 500 });
    const { client } = await open({ budget: { usd: 1 }, max_parallel: 2 });
    const requests = Array.from({ length: 12 }, (_, at) => request(`r${at}`, `prompt ${at}`));
    const created = await client.messages.batches.create({ requests });
    await expect.poll(() => provider.live.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
    const canceling = await client.messages.batches.cancel(created.id);
    expect(canceling).toMatchObject({ processing_status: "canceling", ended_at: null, results_url: null });
    expect(canceling.cancel_initiated_at).not.toBeNull();
    const batch = await ended(client, created);
    const { succeeded, canceled, errored, expired } = batch.request_counts;
    expect([succeeded + canceled, errored, expired]).toEqual([12, 0, 0]);
    expect(canceled).toBeGreaterThan(0);
    const results = await resultsOf(client, batch);
    expect(results.size).toBe(12);
    expect([...results.values()].filter(({ type }) => type === "canceled")).toHaveLength(canceled);
    expect(await thrownBy(client.messages.batches.cancel(created.id))).toBeInstanceOf(BadRequestError);
  });

  it("is deleted with its results once it has ended, and not before", async () => {
    provider.behave({ liveMs: 300 });
    const { client } = await open();
    const created = await client.messages.batches.create({ requests: [request("a", "one")] });
    expect(await thrownBy(client.messages.batches.delete(created.id))).toBeInstanceOf(BadRequestError);
    await ended(client, created);
    const deleted = await client.messages.batches.delete(created.id);
    expect(deleted).toEqual({ id: created.id, type: "message_batch_deleted" });
    expect(await thrownBy(client.messages.batches.retrieve(created.id))).toBeInstanceOf(NotFoundError);
    expect((await client.messages.batches.list()).data).toEqual([]);
  });

  it("is listed newest first, in pages in both directions, and only in its own run and API", async () => {
    const { client, token } = await open();
    const other = await open();
    const ids: string[] = [];
    for (const name of ["a", "b", "c"])
      ids.unshift((await client.messages.batches.create({ requests: [request(name, name)] })).id);
    const listed = await all(client.messages.batches.list({ limit: 2 }));
    expect(listed.map(({ id }) => id)).toEqual(ids);
    const page = await client.messages.batches.list({ limit: 1, before_id: ids[2] ?? "" });
    expect([page.data.map(({ id }) => id), page.has_more, page.first_id, page.last_id]).toEqual([
      [ids[1]],
      true,
      ids[1],
      ids[1],
    ]);
    expect((await other.client.messages.batches.list()).data).toEqual([]);
    expect(await thrownBy(other.client.messages.batches.retrieve(ids[0] ?? ""))).toBeInstanceOf(NotFoundError);
    expect(await (await gateway.fetch("/v1/batches", { token })).json()).toMatchObject({ data: [] });
    expect((await gateway.fetch(`/v1/batches/${ids[0]}`, { token })).status).toBe(404);
    expect((await gateway.fetch(`/v1/batches/${ids[0]}/cancel`, { token, method: "POST" })).status).toBe(404);
    // Its input is no file of the client.
    expect(await (await gateway.fetch("/v1/files?purpose=batch", { token })).json()).toMatchObject({ data: [] });
  });

  it.each([
    ["no requests", { requests: [] }, "requests"],
    ["no list", {}, "requests"],
    ["an unknown field", { requests: [{ ...request("a", "x"), more: 1 }] }, "requests[0].more"],
    ["a custom_id with a dot", { requests: [request("a.b", "x")] }, "requests[0].custom_id: "],
    ["a custom_id of 65 letters", { requests: [request("a".repeat(65), "x")] }, "requests[0].custom_id: "],
    ["the same custom_id twice", { requests: [request("a", "x"), request("a", "y")] }, "requests[1].custom_id"],
    ["params that are no object", { requests: [{ custom_id: "a", params: [] }] }, "requests[0].params: "],
    ["another unknown field", { requests: [request("a", "x")], window: "1h" }, 'unknown field "window"'],
  ])("with %s is refused when it is created", async (_, json, words) => {
    const { token } = await open();
    const response = await gateway.fetch("/v1/messages/batches", { token, json });
    expect(response.status).toBe(400);
    const body: unknown = await response.json();
    expect(body).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(JSON.stringify(body)).toContain(JSON.stringify(words).slice(1, -1));
  });

  it("is the same one for the same idempotency key and body", async () => {
    const { token } = await open();
    const json = { requests: [request("a", "one"), request("longest-id-of-64-".padEnd(64, "x"), "two")] };
    const headers = { "idempotency-key": "k1" };
    const send = async (body: unknown) => {
      const response = await gateway.fetch("/v1/messages/batches", { token, json: body, headers });
      return { status: response.status, id: named.safeParse(await response.json()).data?.id };
    };
    const [first, again] = [await send(json), await send(json)];
    expect([first.status, again.status, again.id]).toEqual([200, 200, first.id]);
    expect((await send({ requests: [request("a", "other")] })).status).toBe(409);
  });
});

reportLeftOut("message batches with Anthropic's Python client", missingEnvironment("openai-3"));
describe.skipIf(missingEnvironment("openai-3") !== null)("Anthropic's Python client", () => {
  it("creates, polls, reads, lists, cancels and deletes message batches", async () => {
    const { token } = await open({ budget: { usd: 1 } });
    const child = spawn(pythonOf("openai-3"), [join(import.meta.dirname, "python/programs/anthropic_batches.py")], {
      env: { PATH: process.env["PATH"] ?? "", ANTHROPIC_BASE_URL: gateway.url, ANTHROPIC_API_KEY: token },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const closed = new Promise((resolve) => child.once("close", resolve));
    const [status, printed, complaint] = await Promise.all([closed, text(child.stdout), text(child.stderr)]);
    expect(status, complaint).toBe(0);
    expect(JSON.parse(printed)).toEqual({
      results: { a: "one", b: "two", bad: "invalid_request_error" },
      counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 },
      listed: 2,
      canceled: ["canceling", "ended"],
      deleted: "message_batch_deleted",
      gone: "NotFoundError",
    });
  });
});
