/** The Responses API with OpenAI's own client: made, streamed, kept by the upstream that made them. */
import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { all, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

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
  it("answer, with usage and its cost, within the cap", async () => {
    const request = { model: "up/echo", input: "say this", instructions: "be brief", max_output_tokens: 30 };
    const response = await openai.responses.create(request);
    expect(response.output_text).toBe("say this");
    expect(costOf(response.usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
    expect(clients.provider.exchanges).toMatchObject([{ json: { ...request, model: "echo" } }]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("stream every event in order, and the last has usage and cost", async () => {
    const stream = await openai.responses.create({ model: "up/echo", input: "say this in pieces", stream: true });
    const events = await all(stream);
    expect(events[0]?.type).toBe("response.created");
    const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    expect(text).toBe("say this in pieces");
    const last = events.at(-1);
    if (last?.type !== "response.completed") return expect.fail(`the last event is ${last?.type}`);
    expect(costOf(last.response.usage ?? undefined)).toBe(clients.provider.billedNanoUsd() / 1e9);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("are gathered by the client's own helper", async () => {
    const stream = openai.responses.stream({ model: "up/echo", input: "whole" });
    expect((await stream.finalResponse()).output_text).toBe("whole");
  });
});

describe("a response that is kept", () => {
  for (const stream of [false, true]) {
    it(`and was ${stream ? "streamed" : "answered whole"} is retrieved, listed, cancelled and deleted where it is kept`, async () => {
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

  it("is there as soon as its client has it", async () => {
    for (let index = 0; index < 10; index += 1) {
      const id = await made(openai, { stream: index % 2 === 0 });
      expect(await openai.responses.retrieve(id)).toMatchObject({ id });
    }
  });

  it("by another run is not found, and neither is one that nobody made", async () => {
    const id = await made(openai, { stream: false });
    await run.attempts(1);
    const other = await clients.openRun();
    const stranger = new OpenAI({ baseURL: clients.baseUrl, apiKey: other.token });
    for (const ask of [
      () => stranger.responses.retrieve(id),
      () => stranger.responses.cancel(id),
      () => stranger.responses.delete(id),
      () => all(stranger.responses.inputItems.list(id)),
      () => openai.responses.retrieve("resp_nobody"),
    ]) {
      expect(await thrownBy(ask())).toBeInstanceOf(NotFoundError);
    }
    expect(clients.provider.exchanges).toHaveLength(1);
  });

  it("with store: false is not remembered", async () => {
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
  it("what the provider would add to the prompt or bill by use is refused by name, and passes without one", async () => {
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
