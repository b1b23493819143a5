/** That Anthropic's own client, with the retries that it has by default, adds none to those of the gateway. */
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHUNKED, FAILURES, startAttempts } from "./attempts.ts";
import { all, thrownBy } from "./world.ts";

const request = { max_tokens: 100, messages: [{ role: "user" as const, content: "hi" }] };
const REQUESTS: [string, (client: Anthropic, model: string) => PromiseLike<unknown>][] = [
  ["a message", (client, model) => client.messages.create({ ...request, model })],
  [
    "a streamed message",
    async (client, model) => all(await client.messages.create({ ...request, model, stream: true })),
  ],
];

describe.each(REQUESTS)("%s that fails", (_, send) => {
  let gateway: Awaited<ReturnType<typeof startAttempts>>;
  beforeAll(async () => void (gateway = await startAttempts("anthropic")));
  afterAll(() => gateway.stop());

  it.each(FAILURES)(
    "by $failure reaches the upstream exactly as often as the gateway is configured to",
    async (expected) => {
      const run = await gateway.openRun();
      const client = new Anthropic({ baseURL: gateway.gateway.url, apiKey: run.token });
      const error = await thrownBy(send(client, `${expected.failure}/m`));
      if (!(error instanceof APIError)) return expect.fail(`not an APIError: ${String(error)}`);
      // Anthropic's form has the error's own fields one level deeper.
      const body: unknown = error.error;
      const inner: unknown = typeof body === "object" && body !== null && "error" in body ? body.error : body;
      await run.expectAttempts(expected, { headers: error.headers, error: inner });
    },
  );

  it("by breaking off after its first byte is sent once", async () => {
    const run = await gateway.openRun();
    await thrownBy(send(new Anthropic({ baseURL: gateway.gateway.url, apiKey: run.token }), "chunked/m"));
    await run.expectAttempts(CHUNKED, null);
  });
});
