import { describe, expect, it } from "vitest";
import { answerHeaders, endpointUrl, relayHeaders } from "../../../src/providers/endpoints.ts";
import { KEY, makeAnthropic, makeUpstream } from "./make.ts";

const openai = makeUpstream();
const anthropic = makeAnthropic();
const simulated = makeUpstream({ kind: "simulated", apiKey: null });

describe("endpointUrl", () => {
  it.each([
    ["chat", "https://acme.test/v1/chat/completions"],
    ["completions", "https://acme.test/v1/completions"],
    ["embeddings", "https://acme.test/v1/embeddings"],
    ["responses", "https://acme.test/v1/responses"],
  ] as const)("asks for %s below the base_url of an openai upstream, and at no anthropic one", (endpoint, url) => {
    expect(endpointUrl(openai, endpoint, "m")).toEqual({ ok: true, url });
    expect(endpointUrl(anthropic, endpoint, "m")).toMatchObject({
      ok: false,
      reason: { reason: "invalid_request", param: "model" },
    });
    expect(endpointUrl(simulated, endpoint, "m").ok).toBe(true);
  });

  it("asks for messages at an anthropic upstream, and at no openai one", () => {
    expect(endpointUrl(anthropic, "messages", "m")).toEqual({ ok: true, url: "https://acme.test/v1/messages" });
    expect(endpointUrl(openai, "messages", "m")).toMatchObject({
      ok: false,
      reason: { reason: "invalid_request", param: "model" },
    });
    expect(endpointUrl(simulated, "messages", "m").ok).toBe(true);
  });
});

/** All that clients and their proxies send, by lower-case name. */
const SENT: Record<string, string> = {
  accept: "text/event-stream",
  "accept-encoding": "gzip, br",
  authorization: "Bearer run-token",
  "anthropic-beta": "files-api-2025-04-14",
  "anthropic-version": "2024-01-01",
  cookie: "session=1",
  "cf-connecting-ip": "10.0.0.1",
  forwarded: "for=10.0.0.1",
  host: "gateway.test",
  "openai-beta": "responses=v1",
  "openai-organization": "org-1",
  "user-agent": "OpenAI/JS 7.55.0",
  "x-api-key": "run-token",
  "x-fanout-run": "run_1",
  "x-forwarded-for": "10.0.0.1",
  "x-request-id": "r1",
  "x-stainless-retry-count": "1",
};
const sent = (name: string): string | undefined => SENT[name];

describe("relayHeaders", () => {
  it("takes from a client what its upstream reads, and nothing that speaks of client or gateway", () => {
    expect(relayHeaders(openai, sent)).toEqual({
      accept: "text/event-stream",
      "anthropic-beta": "files-api-2025-04-14",
      "anthropic-version": "2024-01-01",
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
      "openai-beta": "responses=v1",
      "user-agent": "fanout",
    });
  });

  it("names the upstream's key as its protocol does, and a version where the client names none", () => {
    expect(relayHeaders(anthropic, () => undefined)).toEqual({
      "anthropic-version": "2023-06-01",
      "content-type": "application/json",
      "user-agent": "fanout",
      "x-api-key": KEY,
    });
    expect(relayHeaders(anthropic, sent)["anthropic-version"]).toBe("2024-01-01");
    expect(relayHeaders(anthropic, sent)).not.toHaveProperty("authorization");
  });

  it("sends no key where none is configured", () => {
    for (const upstream of [makeUpstream({ apiKey: null }), makeAnthropic({ apiKey: null })]) {
      const headers = relayHeaders(upstream, sent);
      expect([headers["authorization"], headers["x-api-key"]]).toEqual([undefined, undefined]);
    }
  });

  it("lets configured headers win over the client's, and the key over them", () => {
    const headers = { "openai-beta": "configured", authorization: "Bearer other", "x-org": "o" };
    expect(relayHeaders(makeUpstream({ headers }), sent)).toMatchObject({
      "openai-beta": "configured",
      "x-org": "o",
      authorization: `Bearer ${KEY}`,
    });
  });
});

describe("answerHeaders", () => {
  const upstream = makeUpstream();

  it("have no key of the upstream's, in none of them", () => {
    const quoting = { "openai-model": `m ${KEY}`, "x-ratelimit-limit-requests": KEY, "x-request-id": `req ${KEY}!` };
    expect(answerHeaders(new Headers({ ...quoting, "content-type": `text/plain; key=${KEY}` }), upstream)).toEqual({
      "content-type": "text/plain; key=[redacted]",
      "openai-model": "m [redacted]",
      "x-ratelimit-limit-requests": "[redacted]",
      "x-upstream-request-id": "req [redacted]!",
    });
  });

  it("passes on what clients read, and nothing that the gateway or the connection says itself", () => {
    const headers = new Headers({
      "access-control-allow-origin": "*",
      "alt-svc": "h3",
      "anthropic-organization-id": "org",
      "anthropic-ratelimit-requests-remaining": "9",
      "cf-ray": "1",
      "content-encoding": "gzip",
      "content-length": "10",
      "content-type": "application/json; charset=utf-8",
      "openai-model": "gpt-x",
      "openai-organization": "org",
      "openai-processing-ms": "12",
      "openai-version": "2020-10-01",
      "retry-after": "2",
      "retry-after-ms": "1500",
      server: "acme",
      "set-cookie": "a=b",
      "strict-transport-security": "max-age=1",
      "transfer-encoding": "chunked",
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-reset-tokens": "6m0s",
      "x-request-id": "req_upstream",
      "x-should-retry": "true",
    });
    expect(answerHeaders(headers, upstream)).toEqual({
      "anthropic-ratelimit-requests-remaining": "9",
      "content-type": "application/json; charset=utf-8",
      "openai-model": "gpt-x",
      "openai-processing-ms": "12",
      "openai-version": "2020-10-01",
      "retry-after": "2",
      "retry-after-ms": "1500",
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-reset-tokens": "6m0s",
      "x-upstream-request-id": "req_upstream",
    });
    expect(answerHeaders(new Headers({ "request-id": "req_1" }), upstream)).toEqual({
      "x-upstream-request-id": "req_1",
    });
  });
});
