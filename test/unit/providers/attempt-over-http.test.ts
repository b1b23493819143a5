import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { RESPONSE_BYTES_MAX } from "../../../src/limits.ts";
import { attempt } from "../../../src/providers/attempt.ts";
import { completion, KEY, makeDeps, makeLease, makeUpstream } from "./make.ts";

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}/v1`;
}

function ask(baseUrl: string, timeoutMs = 5_000) {
  const job = { upstream: makeUpstream({ baseUrl }), lease: makeLease({ timeoutMs }), body: { prompt: "hi" } };
  return attempt(job, makeDeps(fetch));
}

describe("attempt over HTTP", () => {
  it("carries the prompt there and the answer back", async () => {
    const seen: unknown[] = [];
    const baseUrl = await listen(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      seen.push([request.method, request.url, request.headers.authorization, JSON.parse(text)]);
      response.end(completion("hello"));
    });
    expect(await ask(baseUrl)).toMatchObject({ kind: "success", text: "hello", usage: { promptTokens: 10 } });
    const body = { model: "gpt-x", messages: [{ role: "user", content: "hi" }] };
    expect(seen).toEqual([["POST", "/v1/chat/completions", `Bearer ${KEY}`, body]]);
  });

  it("calls a refused connection transient and a reset one unknown", async () => {
    const gone = await listen(() => {});
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await ask(gone)).toMatchObject({ class: "transient", reason: { reason: "upstream_error" } });
    const resetting = await listen((request) => request.socket.resetAndDestroy());
    expect(await ask(resetting)).toMatchObject({ class: "unknown", reason: { reason: "upstream_error" } });
  });

  it("calls an answer shorter than announced truncated", async () => {
    const baseUrl = await listen((_, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write(completion("hi"), () => response.destroy());
    });
    expect(await ask(baseUrl)).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it("times out a body that stalls, and closes the connection", async () => {
    const closed = Promise.withResolvers<void>();
    const baseUrl = await listen((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"choices":[');
      response.on("close", closed.resolve);
    });
    expect(await ask(baseUrl, 100)).toMatchObject({ class: "unknown", reason: { reason: "upstream_timeout" } });
    await closed.promise;
  });

  it("stops reading a huge body", async () => {
    const closed = Promise.withResolvers<void>();
    const baseUrl = await listen((_, response) => {
      const chunk = Buffer.alloc(100_000, "x");
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", more).on("close", closed.resolve);
      more();
    });
    const outcome = await ask(baseUrl);
    const message = expect.stringContaining(String(RESPONSE_BYTES_MAX));
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_error", message } });
    await closed.promise;
  });

  it("follows no redirect with its key", async () => {
    const seen: unknown[] = [];
    const elsewhere = await listen((request, response) => {
      seen.push(request.headers.authorization);
      response.end(completion("stolen"));
    });
    const baseUrl = await listen((_, response) => {
      response.writeHead(307, { location: `${elsewhere}/chat/completions` }).end();
    });
    expect(await ask(baseUrl)).toMatchObject({ class: "rejected", reason: { reason: "upstream_error", status: 307 } });
    expect(seen).toEqual([]);
  });
});
