import { describe, expect, it } from "vitest";
import { OWN_PARAMS } from "../../../../../src/providers/formats/request/own-params.ts";
import { CAP_SPELLINGS } from "../../../../../src/providers/formats/request/request-fields.ts";
import { buildRequest as built } from "../../../../../src/providers/kinds/openai/request.ts";
import type { UpstreamRequest } from "../../../../../src/providers/kinds/kind.ts";
import { KEY, makeLease, makeUpstream } from "../../make.ts";

function buildRequest(...job: Parameters<typeof built>): UpstreamRequest {
  const request = built(...job);
  if (!request.ok) throw new Error(request.reason.reason);
  return request.request;
}

describe("buildRequest", () => {
  it("posts a prompt as the user message, system first", () => {
    const request = buildRequest(makeUpstream(), makeLease(), { prompt: "hi", system: "be brief" });
    expect(request.url).toBe("https://acme.test/v1/chat/completions");
    expect(JSON.parse(request.body)).toEqual({
      model: "gpt-x",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hi" },
      ],
    });
  });

  it("passes messages and params on unchanged", () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "a" }], name: "n" }];
    const params = { top_p: 0.5, stop: ["x"], tools: [{ type: "function" }], store: true };
    const request = buildRequest(makeUpstream(), makeLease(), { messages, temperature: 0, params });
    expect(JSON.parse(request.body)).toEqual({ model: "gpt-x", messages, temperature: 0, ...params });
  });

  it("sends the cap in the field the upstream reads, and none without a cap", () => {
    const lease = makeLease({ capTokens: 64 });
    const modern = makeUpstream({ capField: "max_completion_tokens" });
    expect(JSON.parse(buildRequest(makeUpstream(), lease, { prompt: "a" }).body)).toMatchObject({ max_tokens: 64 });
    expect(JSON.parse(buildRequest(modern, lease, { prompt: "a" }).body)).toMatchObject({ max_completion_tokens: 64 });
    expect(buildRequest(modern, makeLease(), { prompt: "a" }).body).not.toContain("max_");
  });

  it.each([...OWN_PARAMS.keys(), ...CAP_SPELLINGS])("lets params set no %s", (name) => {
    const lease = makeLease({ capTokens: 64 });
    const body = { prompt: "a", temperature: 0.1 };
    const bare = buildRequest(makeUpstream(), lease, body).body;
    expect(buildRequest(makeUpstream(), lease, { ...body, params: { [name]: 99 } }).body).toBe(bare);
  });

  it("carries the key as a bearer token and nowhere else", () => {
    const { url, headers, body } = buildRequest(makeUpstream(), makeLease(), { prompt: "a" });
    expect(headers).toEqual({
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": "fanout",
      authorization: `Bearer ${KEY}`,
    });
    expect(url + body).not.toContain(KEY);
  });

  it("adds configured headers, and no authorization without a key", () => {
    const upstream = makeUpstream({ apiKey: null, headers: { "x-team": "a", "user-agent": "me" } });
    const { headers } = buildRequest(upstream, makeLease(), { prompt: "a" });
    expect(headers).toMatchObject({ "x-team": "a", "user-agent": "me" });
    expect(headers).not.toHaveProperty("authorization");
  });
});
