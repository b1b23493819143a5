/** The Responses API with OpenAI's own client: made, streamed, kept by the upstream that made them. */
import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { all, costReader, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let openai: OpenAI;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
  openai = new OpenAI({ baseURL: clients.baseUrl, apiKey: run.token });
});
afterAll(() => clients.stop());

const costOf = (usage: object | undefined): unknown => (usage !== undefined && "cost" in usage ? usage.cost : null);

describe("responses", () => {
  it("return an answer with usage and cost, within the cap", async () => {
    const request = { model: "up/echo", input: "say this", instructions: "be brief", max_output_tokens: 30 };
    const response = await openai.responses.create(request);
    expect(response.output_text).toBe("say this");
    expect(costOf(response.usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
    expect(clients.provider.exchanges).toMatchObject([{ json: { ...request, model: "echo" } }]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("stream every event in order, the last with usage, and the cost in a comment behind it", async () => {
    const { fetch, costNanoUsd } = costReader();
    const request = { model: "up/echo", input: "say this in pieces", stream: true } as const;
    const stream = await openai.withOptions({ fetch }).responses.create(request);
    const events = await all(stream);
    expect(events[0]?.type).toBe("response.created");
    const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    expect(text).toBe("say this in pieces");
    const last = events.at(-1);
    if (last?.type !== "response.completed") return expect.fail(`the last event is ${last?.type}`);
    expect(last.response.usage?.output_tokens).toBeGreaterThan(0);
    expect(await costNanoUsd()).toBe(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("are assembled by the client's own helper", async () => {
    const stream = openai.responses.stream({ model: "up/echo", input: "whole" });
    expect((await stream.finalResponse()).output_text).toBe("whole");
  });
});

describe("a stored response", () => {
  for (const stream of [false, true]) {
    it(`that was ${stream ? "streamed" : "answered whole"} is retrieved, listed, cancelled and deleted at the upstream that stores it`, async () => {
      const id = await made(openai, { stream });
      await run.attempts(1);
      expect(await openai.responses.retrieve(id)).toMatchObject({ id, status: "completed" });
      const items = await all(openai.responses.inputItems.list(id, { limit: 5, order: "asc" }));
      expect(items).toMatchObject([{ id: "msg_1" }]);
      expect(await openai.responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
      await openai.responses.delete(id);
      const asked = clients.provider.exchanges.slice(1).map(({ method, path }) => `${method} ${path}`);
      const at = `/v1/responses/${id}`;
      const listed = `GET ${at}/input_items?limit=5&order=asc`;
      expect(asked).toEqual([`GET ${at}`, listed, `POST ${at}/cancel`, `DELETE ${at}`]);
      expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
    });
  }

  it("can be read as soon as its client has its id", async () => {
    for (let index = 0; index < 10; index += 1) {
      const id = await made(openai, { stream: index % 2 === 0 });
      expect(await openai.responses.retrieve(id)).toMatchObject({ id });
    }
  });

  it("of another run is not found, like an unknown id", async () => {
    const id = await made(openai, { stream: false });
    await run.attempts(1);
    const other = await clients.openRun();
    const stranger = new OpenAI({ baseURL: clients.baseUrl, apiKey: other.token });
    for (const send of [
      () => stranger.responses.retrieve(id),
      () => stranger.responses.cancel(id),
      () => stranger.responses.delete(id),
      () => all(stranger.responses.inputItems.list(id)),
      () => openai.responses.retrieve("resp_nobody"),
    ]) {
      expect(await thrownBy(send())).toBeInstanceOf(NotFoundError);
    }
    expect(clients.provider.exchanges).toHaveLength(1);
  });

  it("with store: false cannot be retrieved", async () => {
    const { id } = await openai.responses.create({ model: "up/echo", input: "x", store: false });
    await run.attempts(1);
    expect(await thrownBy(openai.responses.retrieve(id))).toBeInstanceOf(NotFoundError);
  });
});

async function made(client: OpenAI, { stream }: { stream: boolean }): Promise<string> {
  const request = { model: "up/echo", input: "keep this" };
  if (!stream) return (await client.responses.create(request)).id;
  const [first] = await all(await client.responses.create({ ...request, stream: true }));
  return first?.type === "response.created" ? first.response.id : expect.fail("no response was created");
}

describe("under a budget", () => {
  it("a field that adds to the prompt or is billed by use is refused by name; without a budget it passes", async () => {
    const unlimited = await clients.openRun();
    const free = new OpenAI({ baseURL: clients.baseUrl, apiKey: unlimited.token });
    const base = { model: "up/echo", input: "x" };
    const requests: [string, OpenAI.Responses.ResponseCreateParamsNonStreaming][] = [
      ["tools[0].type", { ...base, tools: [{ type: "web_search" }] }],
      ["previous_response_id", { ...base, previous_response_id: "resp_1" }],
      ["conversation", { ...base, conversation: "conv_1" }],
      ["background", { ...base, background: true }],
      ["service_tier", { ...base, service_tier: "priority" }],
    ];
    for (const [param, request] of requests) {
      const error = await thrownBy(openai.responses.create(request));
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ param, code: "invalid_request", type: "invalid_request_error" });
    }
    expect(clients.provider.exchanges).toEqual([]);
    for (const [, request] of requests) await free.responses.create(request);
    expect(clients.provider.exchanges).toHaveLength(requests.length);
  });
});
