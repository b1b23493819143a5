/** One run whose bills are odd teaches no other run: none of their calls is refused or narrowed by it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

const CAP = 50;
const HIDDEN_TOKENS = 20_000;
const RUNS = 100;
/** What one call may cost at the default overhead: 2 bytes, 8 for the message, 128 for the template, and its cap. */
const ONE_CALL_USD = ((2 + 8 + 128) * 1 + CAP * 2 + 2) / 1e6;

let upstream: ByteUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve(({ body }, reply) => {
    const text = body.toString("utf8");
    const hidden = /hidden (\d+)/.exec(text)?.[1];
    const usage = { prompt_tokens: 9 + Number(hidden ?? 0), completion_tokens: 2 };
    const message = { role: "assistant", content: "Yes." };
    const answer = { id: "c", object: "chat.completion", model: "m", choices: [{ index: 0, message }], usage };
    reply.whole(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  });
  const own = {
    kind: "openai",
    base_url: `${upstream.origin}/v1`,
    models: ["*"],
    prices: { "*": { input: 1, output: 2 } },
  };
  gateway = await startGateway({ vars: { DEFAULT_MODEL: "one/quiet", UPSTREAMS: { one: own } } });
});

afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

async function call(usd: number, model: string, prompt: string): Promise<{ status: number; caps: unknown[] }> {
  const { token } = await gateway.openRun({ budget: { usd } });
  upstream.forget();
  const answer = await gateway.fetch("/query", { token, json: { prompt, model: `one/${model}`, max_tokens: CAP } });
  await answer.text();
  const caps = upstream.calls.map(({ body }): unknown => JSON.parse(body.toString("utf8")).max_tokens);
  return { status: answer.status, caps };
}

describe("one hostile run", () => {
  it(`narrows and refuses no call of ${RUNS} others on its model`, { tags: ["slow"] }, async () => {
    expect(await call(ONE_CALL_USD, "taught", "hi")).toEqual({ status: 200, caps: [CAP] });
    expect((await call(1, "taught", `hidden ${HIDDEN_TOKENS}`)).status).toBe(200);
    const others = [];
    for (let at = 0; at < RUNS; at++) others.push(await call(ONE_CALL_USD, "taught", "hi"));
    expect(others.filter(({ status }) => status !== 200)).toEqual([]);
    expect(others.filter(({ caps }) => caps.length !== 1 || caps[0] !== CAP)).toEqual([]);
  });
});

describe("two runs that see the same", () => {
  it("teach a third, whose call is refused before it could overrun", async () => {
    await call(1, "both", "hidden 500");
    await call(1, "both", "hidden 500");
    await expect.poll(async () => (await call(ONE_CALL_USD, "both", "hi")).status).toBe(402);
  });
});
