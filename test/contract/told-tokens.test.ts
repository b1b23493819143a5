/** What providers say of tokens, beside their number: in the usage of calls, items and groups, streamed and not, and after a kill. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf, groupOf, replyOf } from "./world.ts";

const USAGE = {
  ...{ prompt_tokens: 200, completion_tokens: 50 },
  prompt_tokens_details: { cached_tokens: 190 },
  completion_tokens_details: { reasoning_tokens: 40 },
};
const TOLD = { prompt_tokens: 200, completion_tokens: 50, cached_tokens: 190, reasoning_tokens: 40 };

let upstream: ByteUpstream;
let gateway: Gateway;
let dataDir: string;

const start = () => {
  const own = { kind: "openai", base_url: `${upstream.origin}/v1`, prices: { "*": { input: 1, output: 2 } } };
  const UPSTREAMS = { one: own };
  return startGateway({
    dataDir,
    vars: { UPSTREAMS, DEFAULT_MODEL: "one/m", ADMIN_KEY: "told-tokens-admin-key-0123456789" },
  });
};

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "told-tokens-"));
  upstream = await startByteUpstream();
  upstream.serve(({ body }, reply) => {
    const tells = !body.toString("utf8").includes("say nothing");
    const usage = tells ? USAGE : { prompt_tokens: 3, completion_tokens: 2 };
    const message = { role: "assistant", content: "Yes." };
    const answer = { id: "c", object: "chat.completion", model: "m", choices: [{ index: 0, message }], usage };
    reply.whole(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  });
  gateway = await start();
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

describe("cached and reasoning tokens", () => {
  it("are in the usage of a call, and absent where the provider says nothing", async () => {
    const { token } = await gateway.openRun({});
    const ask = async (prompt: string, headers = {}) =>
      replyOf(await answerOf(await gateway.fetch("/query", { token, json: { prompt }, headers }))).usage;
    expect(await ask("hi")).toMatchObject(TOLD);
    expect(await ask("stored", { "idempotency-key": "k" })).toMatchObject(TOLD);
    expect(await ask("stored", { "idempotency-key": "k" })).toMatchObject(TOLD);
    expect(Object.keys(await ask("say nothing"))).toEqual([
      "prompt_tokens",
      "completion_tokens",
      "total_tokens",
      "cost",
    ]);
  });

  it("are in the usage of items and of their group, also after the gateway was killed", async () => {
    const { token } = await gateway.openRun({});
    const json = { prompts: ["a", "say nothing", "b"] };
    const group = groupOf(await answerOf(await gateway.fetch("/batch", { token, json })));
    const told = { prompt_tokens: 403, cached_tokens: 380, reasoning_tokens: 80 };
    expect(group.usage).toMatchObject(told);
    expect(group.items.map(({ usage }) => usage)).toMatchObject([TOLD, { prompt_tokens: 3 }, TOLD]);
    expect(group.items[1]?.usage).not.toHaveProperty("cached_tokens");
    await gateway.kill();
    gateway = await start();
    const again = groupOf(await answerOf(await gateway.fetch(`/groups/${group.id}`, { token })));
    expect(again.usage).toMatchObject(told);
    expect(again.items).toEqual(group.items);
    expect(again.results).toEqual(group.results);
  });
});
