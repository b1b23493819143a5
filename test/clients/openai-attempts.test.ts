/** That OpenAI's own client, with the retries that it has by default, adds none to those of the gateway. */
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHUNKED, FAILURES, startAttempts } from "./attempts.ts";
import { all, thrownBy } from "./world.ts";

const messages = [{ role: "user" as const, content: "hi" }];
const REQUESTS: [string, (client: OpenAI, model: string) => PromiseLike<unknown>][] = [
  ["a chat completion", (client, model) => client.chat.completions.create({ model, messages })],
  [
    "a streamed chat completion",
    async (client, model) => all(await client.chat.completions.create({ model, messages, stream: true })),
  ],
  ["a response", (client, model) => client.responses.create({ model, input: "hi" })],
];

describe.each(REQUESTS)("%s that fails", (_, send) => {
  let gateway: Awaited<ReturnType<typeof startAttempts>>;
  beforeAll(async () => void (gateway = await startAttempts("openai")));
  afterAll(() => gateway.stop());

  it.each(FAILURES)(
    "by $failure reaches the upstream exactly as often as the gateway is configured to",
    async (expected) => {
      const run = await gateway.openRun();
      let sends = 0;
      const counting: typeof fetch = (...request) => {
        sends += 1;
        return fetch(...request);
      };
      const client = new OpenAI({ baseURL: `${gateway.gateway.url}/v1`, apiKey: run.token, fetch: counting });
      const error = await thrownBy(send(client, `${expected.failure}/m`));
      if (!(error instanceof APIError)) return expect.fail(`not an APIError: ${String(error)}`);
      expect(sends).toBe(1);
      await run.expectAttempts(expected, error);
    },
  );

  it("by breaking off after its first byte is sent once", async () => {
    const run = await gateway.openRun();
    await thrownBy(send(new OpenAI({ baseURL: `${gateway.gateway.url}/v1`, apiKey: run.token }), "chunked/m"));
    await run.expectAttempts(CHUNKED, null);
  });
});
