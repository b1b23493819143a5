/** Upstreams that cannot be reached: the call costs nothing, gets one attempt, and its error names `base_url`. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf, errorOf, replyOf } from "./world.ts";

const PRICES = { "*": { input: 1, output: 1 } };

/** A provider that answers while it runs, and counts its requests. */
class Provider {
  requests = 0;
  #answers = true;
  readonly #server: Server = createServer((request, response) => {
    this.requests += 1;
    if (!this.#answers) return void request.socket.destroy();
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      const message = { role: "assistant", content: "here" };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage }));
    });
  });

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  /** From here on it resets each connection once it has read the request's first bytes. */
  resets(): void {
    this.#answers = false;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const works = new Provider();
let gateway: Gateway;
beforeAll(async () => {
  const port = await works.start();
  const closed = new Provider();
  const closedPort = await closed.start();
  await closed.stop();
  const upstream = (base_url: string) => ({ kind: "openai", base_url, models: [], prices: PRICES });
  const UPSTREAMS = {
    works: upstream(`http://127.0.0.1:${port}/v1`),
    refused: upstream(`http://127.0.0.1:${closedPort}/v1`),
    nameless: upstream("http://no-such-host.invalid/v1"),
    // The port is there, but speaks no TLS.
    plain: upstream(`https://127.0.0.1:${port}/v1`),
  };
  const ROUTES = { either: ["refused/m", "works/m"] };
  gateway = await startGateway({ vars: { UPSTREAMS, ROUTES, CONNECT_FIRST: "1" } });
});
afterAll(async () => {
  await gateway.stop();
  await works.stop();
});

const budget = z.object({ usd: z.object({ spent: z.number(), reserved: z.number() }) });

async function openRun() {
  const { id, token } = await gateway.openRun({ budget: { usd: 1 } });
  return {
    tries: async () => {
      const log = await (await gateway.fetch(`/runs/${id}/log`, { token })).text();
      return log.split("\n").filter((line) => line.includes('"event_type":"attempt_started"')).length;
    },
    send: (path: string, json: unknown) => gateway.fetch(path, { token, json }),
    money: async () => budget.parse(await (await gateway.fetch("/budget", { token })).json()).usd,
  };
}

describe.each(["refused", "nameless", "plain"])("an upstream that cannot be reached (%s)", (name) => {
  it("costs nothing, gets one attempt of each call, and the error names base_url, on every way in", async () => {
    const run = await openRun();
    const query = errorOf(await answerOf(await run.send("/query", { prompt: "one", model: `${name}/m` })));
    expect(query).toMatchObject({ attempts: 0, charged_usd: 0, message: expect.stringContaining("base_url") });
    const chat = { model: `${name}/m`, messages: [{ role: "user", content: "one" }] };
    const relayed = await answerOf(await run.send("/v1/chat/completions", chat));
    expect(relayed).toMatchObject({ status: 502, json: { error: { message: expect.stringContaining("base_url") } } });
    const batch = await answerOf(await run.send("/batch", { prompts: ["one", "two"], model: `${name}/m` }));
    const error = expect.objectContaining({ attempts: 0, message: expect.stringContaining("base_url") });
    expect(batch.json).toMatchObject({ errors: [error, error] });
    expect(await run.money()).toMatchObject({ spent: 0, reserved: 0 });
    // Four calls: nothing was sent for any of them, and none was tried again.
    expect(await run.tries()).toBe(4);
  });
});

describe("a route", () => {
  it("goes on to its next target if the first cannot be reached", async () => {
    const run = await openRun();
    const reply = replyOf(await answerOf(await run.send("/query", { prompt: "one", model: "either" })));
    expect(reply).toMatchObject({ text: "here", upstream: "works" });
  });
});

describe("an upstream that was reached before", () => {
  it(
    "is charged for a connection that it breaks off, as the request may have been billed",
    { tags: ["slow"] },
    async () => {
      const run = await openRun();
      expect((await run.send("/query", { prompt: "one", model: "works/m" })).status).toBe(200);
      const { spent } = await run.money();
      works.resets();
      const error = errorOf(await answerOf(await run.send("/query", { prompt: "two", model: "works/m" })));
      expect(error).toMatchObject({ attempts: 3, message: expect.stringContaining("lost before an answer came") });
      expect((await run.money()).spent).toBeGreaterThan(spent);
      expect(works.requests).toBeGreaterThanOrEqual(4);
    },
  );
});
