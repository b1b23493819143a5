/** The budget is true the moment an answer is complete: each answer is followed at once by `GET /budget`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway, type OpenedRun } from "../support/gateway.ts";

const LOOKS_PER_WAY = 50;

const line = z.looseObject({ spent: z.number(), reserved: z.number() });
const budgetReply = z.looseObject({ usd: line, calls: line });
const usageReply = z.looseObject({ llm_calls: z.number() });

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

type Way = {
  path: string;
  json: Record<string, unknown>;
  accept?: string;
  /** Text that ends the answer; null = its close. */ until: string | null;
};

const messages = [{ role: "user", content: "hello" }];
const model = "sim/echo";

const WAYS: Record<string, Way> = {
  "/query": { path: "/query", json: { prompt: "hello", model }, until: null },
  "/batch": { path: "/batch", json: { prompts: ["hello"], model }, until: null },
  "/batch as JSON lines": {
    path: "/batch",
    json: { prompts: ["hello"], model },
    accept: "application/x-ndjson",
    until: '"group_completed"',
  },
  "/batch as events": {
    path: "/batch",
    json: { prompts: ["hello"], model },
    accept: "text/event-stream",
    until: "event: group_completed",
  },
  "/llm_query": { path: "/llm_query", json: { prompt: "hello", model }, until: null },
  chat: { path: "/v1/chat/completions", json: { model, messages }, until: null },
  "chat, streamed": { path: "/v1/chat/completions", json: { model, messages, stream: true }, until: "data: [DONE]" },
  completions: { path: "/v1/completions", json: { model, prompt: "hello" }, until: null },
  embeddings: { path: "/v1/embeddings", json: { model, input: "hello" }, until: null },
  "responses, streamed": {
    path: "/v1/responses",
    json: { model, input: "hello", stream: true },
    until: "event: response.completed",
  },
};

/** Sends a call and reads its answer up to the text that ends it, as clients do, which do not wait for the close. */
async function answered(run: OpenedRun, { path, json, accept, until }: Way): Promise<void> {
  const headers: Record<string, string> = accept === undefined ? {} : { accept };
  const response = await gateway.fetch(path, { method: "POST", json, token: run.token, headers });
  if (response.status !== 200 || response.body === null)
    throw new Error(`${response.status}: ${await response.text()}`);
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (until !== null && text.includes(until)) return;
  }
  if (until !== null) throw new Error(`the answer ended without ${until}: ${text}`);
}

async function look<T>(run: OpenedRun, path: string, schema: z.ZodType<T>): Promise<T> {
  return schema.parse(await (await gateway.fetch(path, { token: run.token })).json());
}

describe("right after an answer", () => {
  it.each(Object.entries(WAYS))("of %s, the budget includes its call", { tags: ["slow"] }, async (_, way) => {
    const run = await gateway.openRun({ budget: { usd: 1, calls: 10_000 } });
    const seen: { calls: number; usd: number; reserved: number }[] = [];
    for (let count = 0; count < LOOKS_PER_WAY; count++) {
      await answered(run, way);
      const { calls, usd } = await look(run, "/budget", budgetReply);
      seen.push({ calls: calls.spent, usd: usd.spent, reserved: usd.reserved });
    }
    const expected = Array.from({ length: LOOKS_PER_WAY }, (_each, index) => index + 1);
    expect(seen.map(({ calls }) => calls)).toEqual(expected);
    expect(seen.every(({ usd, reserved }, index) => usd > (seen[index - 1]?.usd ?? 0) && reserved === 0)).toBe(true);
  });

  it("to one of many concurrent calls, the run's document and usage include all ended calls", async () => {
    const run = await gateway.openRun({ budget: { usd: 1 }, max_parallel: 64 });
    await Promise.all(
      Array.from({ length: 64 }, (_, index) =>
        answered(run, {
          path: "/v1/chat/completions",
          json: { model, messages, stream: index % 2 === 0 },
          until: index % 2 === 0 ? "data: [DONE]" : null,
        }),
      ),
    );
    expect((await look(run, "/run", z.looseObject({ budget: budgetReply }))).budget.calls).toMatchObject({
      spent: 64,
      reserved: 0,
    });
    expect((await look(run, "/usage", usageReply)).llm_calls).toBe(64);
  });
});
