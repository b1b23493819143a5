/** Numbers that JavaScript cannot hold reach the upstream as their client wrote them, and come back as the upstream wrote them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

const BIG = "9007199254740993123";
const LONG = "0.12345678901234567890";
const CALL = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":{"id":${BIG}}}}]}`;

let upstream: ByteUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve((_, reply) => {
    const answer = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":${CALL}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`;
    reply.whole(answer, { headers: { "content-type": "application/json" } });
  });
  const own = { kind: "openai", base_url: `${upstream.origin}/v1`, prices: { "*": { input: 1, output: 2 } } };
  gateway = await startGateway({ vars: { UPSTREAMS: { one: own }, DEFAULT_MODEL: "one/m" } });
});
beforeEach(() => upstream.forget());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const MESSAGES = `[{"role":"user","content":"hi"},${CALL},{"role":"tool","tool_call_id":"c1","content":"x","extra":${BIG}}]`;
const PARAMS = `{"seed_of_mine":${BIG},"top_p":${LONG}}`;

async function sent(path: string, body: string): Promise<{ request: string; answer: string }> {
  const { token } = await gateway.openRun({});
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, expect.any(String)]);
  return { request: upstream.calls[0]?.body.toString("utf8") ?? "", answer: text };
}

describe("a number with more digits than JavaScript holds", () => {
  it.each([
    ["/query", `{"messages":${MESSAGES},"params":${PARAMS},"max_tokens":5}`],
    ["/batch", `{"items":[{"messages":${MESSAGES},"params":${PARAMS}}]}`],
    ["/batch", `{"items":[{"messages":${MESSAGES}}],"params":${PARAMS}}`],
  ])(
    "goes through %s unchanged, in messages, arguments and unknown fields, and back in the answer's message",
    async (path, body) => {
      const { request, answer } = await sent(path, body);
      expect(request).toContain(`"arguments":{"id":${BIG}}`);
      expect(request).toContain(`"extra":${BIG}`);
      expect(request).toContain(`"seed_of_mine":${BIG}`);
      expect(request).toContain(`"top_p":${LONG}`);
      expect(answer).toContain(`"arguments":{"id":${BIG}}`);
    },
  );

  it("is a number like any other in the gateway's own fields", async () => {
    const { request } = await sent("/query", `{"prompt":"hi","temperature":0.70000000000000001110}`);
    expect(request).toContain('"temperature":0.7');
  });
});
