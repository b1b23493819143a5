/** What goes along with the bytes of /v1: headers both ways, lists of models, and what is refused before anything is sent. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { CHAT, upstreamSide } from "./v1-shapes.ts";
import { budgetOf, post, PROVIDER_KEY } from "./v1-world.ts";

let gateway: Gateway;
let upstream: ByteUpstream;
let token: string;
let runId: string;
beforeAll(async () => {
  upstream = await startByteUpstream();
  const at = (path: string, models: string[]) => ({
    kind: "openai",
    base_url: `${upstream.origin}${path}`,
    api_key: "secret:PROVIDER_KEY",
    models,
    prices: { "*": { input: 1, output: 2 } },
  });
  const UPSTREAMS = {
    up: at("/v1", ["up-*", "named"]),
    same: at("/v1", ["other-*"]),
    hung: at("/hung", ["hung-*", "hung"]),
    broken: at("/broken", ["*"]),
    claude: { ...at("", ["claude-*"]), kind: "anthropic" },
  };
  gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY } });
  ({ token, id: runId } = await gateway.openRun({ budget: { usd: 1 } }));
});
beforeEach(() => upstream.forget());
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const ASK = '{"model":"up/up-1","messages":[],"max_tokens":5}';

describe("headers", () => {
  it("of the client that belong to the gateway or the connection, above all the run token, are not forwarded", async () => {
    upstream.serve((_, reply) => reply.whole(upstreamSide(CHAT)));
    const headers = {
      cookie: "session=1",
      "openai-beta": "x=1",
      "openai-organization": "org-client",
      "x-api-key": token,
      "x-fanout-run": runId,
      "x-forwarded-for": "10.0.0.1",
      "x-request-id": "mine",
      "x-stainless-retry-count": "1",
      "user-agent": "OpenAI/JS 7.55.0",
    };
    await post(gateway, "/v1/chat/completions", token, ASK, { headers }).body;
    const sent = upstream.calls[0]?.headers ?? {};
    expect(sent).toMatchObject({
      authorization: `Bearer ${PROVIDER_KEY}`,
      "content-type": "application/json",
      "openai-beta": "x=1",
      "user-agent": "fanout",
    });
    expect(JSON.stringify(sent)).not.toContain(token);
    const own = [
      "cookie",
      "openai-organization",
      "x-api-key",
      "x-fanout-run",
      "x-forwarded-for",
      "x-request-id",
      "x-stainless-retry-count",
    ];
    expect(own.filter((name) => name in sent)).toEqual([]);
  });

  it.each([
    ["a whole answer", ASK],
    ["a stream", ASK.replace("}", ',"stream":true}')],
  ])("of %s are those of the upstream that clients read and the gateway's own", async (_, request) => {
    const headers = {
      "x-request-id": "req_up",
      "x-ratelimit-remaining-tokens": "9",
      "set-cookie": "a=b",
      server: "acme",
    };
    upstream.serve(async (_call, reply) => {
      if (!request.includes("stream")) return reply.whole(upstreamSide(CHAT), { headers });
      reply.begin({ headers: { ...headers, "content-type": "text/event-stream" } });
      await reply.write("data: [DONE]\n\n");
      reply.end();
    });
    const asked = post(gateway, "/v1/chat/completions", token, request, { headers: { "x-request-id": "mine" } });
    const got = (await asked.response).headers;
    await asked.body;
    expect(got).toMatchObject({
      "x-request-id": "mine",
      "x-upstream-request-id": "req_up",
      "x-ratelimit-remaining-tokens": "9",
      "x-fanout-run": expect.stringMatching(/^run_/),
      "x-fanout-budget-remaining-usd": expect.stringMatching(/^0\.\d+$/),
    });
    expect([got["set-cookie"], got["server"]]).toEqual([undefined, undefined]);
  });
});

describe("a request that is refused", () => {
  it.each([
    ["/v1/chat/completions", "", 400],
    ["/v1/chat/completions", "{", 400],
    ["/v1/chat/completions", "[]", 400],
    ["/v1/chat/completions", '{"model":"up/up-1"}', 400],
    ["/v1/chat/completions", '{"model":"up/up-1","messages":[],"max_tokens":-1}', 400],
    ["/v1/chat/completions", '{"model":"claude/claude-1","messages":[]}', 400],
    ["/v1/messages", '{"model":"up/up-1","max_tokens":5,"messages":[]}', 400],
    ["/v1/chat/completions", '{"model":"nowhere","model":"up/up-1","messages":[]}', 400],
    ["/v1/embeddings", '{"model":"up/up-1"}', 400],
  ])("by %s, %s, sends, reserves and charges nothing", async (path, request, status) => {
    const fresh = await gateway.openRun({ budget: { usd: 1 } });
    const before = await budgetOf(gateway, fresh.token);
    const asked = post(gateway, path, fresh.token, request);
    expect((await asked.response).statusCode).toBe(status);
    const { error } = z.object({ error: z.looseObject({}) }).parse(JSON.parse((await asked.body).bytes.toString()));
    expect(error).toMatchObject({ code: "invalid_request", type: "invalid_request_error" });
    expect(upstream.calls).toEqual([]);
    expect(await budgetOf(gateway, fresh.token)).toEqual(before);
  });
});

describe("a plain name that upstreams of both protocols serve", () => {
  const asked = async (path: string, model: string) => {
    upstream.serve((_, reply) => reply.whole(upstreamSide(CHAT)));
    const request = JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hi" }] });
    const posted = post(gateway, path, token, request);
    const { statusCode } = await posted.response;
    return {
      status: statusCode,
      text: (await posted.body).bytes.toString(),
      sent: upstream.calls.map((call) => call.path),
    };
  };

  it.each([
    ["/v1/messages", "/v1/messages"],
    ["/v1/messages/count_tokens", "/v1/messages/count_tokens"],
    ["/v1/chat/completions", "/broken/chat/completions"],
  ])("goes by %s to an upstream that has the endpoint", async (path, sent) => {
    expect((await asked(path, "claude-1")).sent).toEqual([sent]);
  });

  it("is refused where none of them has it, with those that have", async () => {
    const { status, text, sent } = await asked("/v1/messages", "up-1");
    expect([status, sent]).toEqual([400, []]);
    expect(text).toContain("up-1 is served by up, but");
    expect(text).toContain("/v1/messages works at claude: name a model of it, such as claude/MODEL");
  });
});

describe("a response that its upstream stores", () => {
  it.each(["as one", "in chunks"])("is returned %s unchanged, without the upstream's key", async (how) => {
    const kept = `{ "id":"resp_kept","status":"completed","n":1.0e+2,"metadata":{"key":"${PROVIDER_KEY}"}}`;
    upstream.serve(async ({ method }, reply) => {
      if (method === "POST" || how === "as one") return reply.whole(method === "POST" ? '{"id":"resp_kept"}' : kept);
      reply.begin();
      for (const byte of kept) await reply.write(byte);
      reply.end();
    });
    await post(gateway, "/v1/responses", token, '{"model":"up/up-1","input":"a","max_output_tokens":16}').body;
    const answer = await gateway.fetch("/v1/responses/resp_kept", { token });
    expect([answer.status, await answer.text()]).toEqual([200, kept.replace(PROVIDER_KEY, "[redacted]")]);
    expect(upstream.calls.at(-1)).toMatchObject({ method: "GET", path: "/v1/responses/resp_kept" });
  });
});

describe("POST /v1/messages/count_tokens", () => {
  const asked = (run = token) =>
    post(gateway, "/v1/messages/count_tokens", run, '{ "messages":[],"model":"claude/claude-1","x":1.0 }');

  it("sends the upstream the same bytes, costs nothing, and returns the upstream's bytes", async () => {
    upstream.serve((_, reply) => reply.whole('{ "input_tokens":1.4e1}'));
    const fresh = await gateway.openRun({ budget: { usd: 1 } });
    const before = await budgetOf(gateway, fresh.token);
    expect((await asked(fresh.token).body).bytes.toString()).toBe('{ "input_tokens":1.4e1}');
    expect(upstream.calls).toMatchObject([{ method: "POST", path: "/v1/messages/count_tokens" }]);
    expect(upstream.calls[0]?.body.toString()).toBe('{ "messages":[],"model":"claude-1","x":1.0 }');
    expect(await budgetOf(gateway, fresh.token)).toEqual(before);
  });

  it("returns 502 if the answer breaks off or mentions the gateway's key, and otherwise the upstream's error", async () => {
    upstream.serve(async (_, reply) => {
      reply.begin({ headers: { "content-length": "100" } });
      await reply.write('{"input');
      reply.reset();
    });
    expect((await asked().response).statusCode).toBe(502);
    upstream.serve((_, reply) => reply.whole(`{"error":{"message":"${PROVIDER_KEY}"}}`, { status: 401 }));
    expect((await asked().response).statusCode).toBe(502);
    upstream.serve((_, reply) => reply.whole('{"type":"error"}', { status: 413 }));
    const { response, body } = asked();
    expect([(await response).statusCode, (await body).bytes.toString()]).toEqual([413, '{"type":"error"}']);
  });
});

describe("GET /v1/models", () => {
  const list = z.object({ data: z.array(z.looseObject({ id: z.string(), object: z.literal("model") })) });

  it(
    "lists what each upstream lists and allows, whatever the others do",
    { tags: ["slow"], timeout: 20_000 },
    async () => {
      upstream.serve(({ path }, reply) => {
        if (path.startsWith("/hung")) return reply.begin();
        if (path.startsWith("/broken")) return reply.reset();
        const ids = ["up-1", "up-2", "other-1", "claude-1", "unknown"];
        const hostile = [null, { id: 1 }, { id: "up-late", created: 1e300 }, { id: "up-\n" }];
        reply.whole(JSON.stringify({ data: [...ids.map((id) => ({ id, created: 7 })), ...hostile] }));
      });
      const answer = await gateway.fetch("/v1/models", { token });
      expect(answer.status).toBe(200);
      const { data } = list.parse(await answer.json());
      expect(data.map(({ id }) => id)).toEqual([
        "up/named",
        "up/up-1",
        "up/up-2",
        "up/up-late",
        "same/other-1",
        "hung/hung",
        "claude/claude-1",
      ]);
      for (const { headers } of upstream.calls) expect(JSON.stringify(headers)).not.toContain(token);
    },
  );
});
