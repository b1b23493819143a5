/** What a limit refuses of a request because nothing bounds it, and the cap in the one field that the upstream reads. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { budgetOf, post, startV1, type V1World } from "./v1-world.ts";

let world: V1World;
beforeAll(async () => {
  world = await startV1({ media_tokens_max: 100, allow_params: ["enable_this", "messages.note"] });
});
beforeEach(() => {
  world.upstream.forget();
  world.upstream.serve(({ body }, reply) => {
    // It reads no cap but this one, as DeepSeek's own API does, and bills all that it writes.
    const { max_tokens: cap = 60_000 } = z.looseObject({ max_tokens: z.number().optional() }).parse(parsed(body));
    const usage = { prompt_tokens: 10, completion_tokens: cap, total_tokens: 10 + cap };
    const choices = [{ index: 0, message: { role: "assistant", content: "…" }, finish_reason: "length" }];
    reply.whole(JSON.stringify({ id: "c", object: "chat.completion", model: "up-1", choices, usage }), {
      headers: { "content-type": "application/json" },
    });
  });
});
afterAll(() => world.stop());

const parsed = (bytes: Buffer): unknown => JSON.parse(bytes.toString());
const user = { role: "user", content: "hi" };
const errorBody = z.object({
  error: z.looseObject({ code: z.string(), message: z.string(), param: z.string().nullable() }),
});

/** Posts a body under a run with a limit of $0.001, or another budget. */
async function send(path: string, body: unknown, budget: Record<string, number> = { usd: 0.001 }) {
  const { token } = await world.gateway.openRun({ budget, default_model: "up-1" });
  const asked = post(world.gateway, path, token, typeof body === "string" ? body : JSON.stringify(body));
  const { statusCode } = await asked.response;
  const text = (await asked.body).bytes.toString();
  return { status: statusCode, text, token };
}

async function refusalOf(path: string, body: unknown) {
  const { status, text } = await send(path, body);
  expect(world.upstream.calls).toEqual([]);
  return { status, ...errorBody.parse(JSON.parse(text)).error };
}

describe("the cap", () => {
  it.each([
    ["max_completion_tokens", 1],
    ["max_output_tokens", 1],
    ["n_predict", 1],
    ["max_tokens", 1],
  ])("is sent as max_tokens if the upstream reads that, even if the client wrote %s", async (field, cap) => {
    const { status, token } = await send("/v1/chat/completions", { model: "up-1", messages: [user], [field]: cap });
    expect(status).toBe(200);
    const [sent] = world.upstream.calls.map(({ body }) => parsed(body));
    expect(sent).toEqual({ model: "up-1", messages: [user], max_tokens: cap });
    await expect.poll(async () => (await budgetOf(world.gateway, token)).calls.spent).toBe(1);
    expect((await budgetOf(world.gateway, token)).usd.spent).toBeLessThanOrEqual(0.001);
  });

  it("is renamed without a limit too, and sent once if the client wrote two", async () => {
    const body = { model: "up-1", messages: [user], max_tokens: 9, max_completion_tokens: 7 };
    expect((await send("/v1/chat/completions", body, {})).status).toBe(200);
    expect(parsed(world.upstream.calls[0]?.body ?? Buffer.alloc(0))).toEqual({
      model: "up-1",
      messages: [user],
      max_tokens: 7,
    });
  });

  it("of a query is sent once, whatever spelling its params add", async () => {
    expect((await send("/query", { prompt: "hi", max_tokens: 50, params: { n_predict: 5 } })).status).toBe(200);
    expect(parsed(world.upstream.calls[0]?.body ?? Buffer.alloc(0))).toEqual({
      model: "up-1",
      messages: [user],
      max_tokens: 5,
    });
  });
});

describe("a name in another case is refused under a limit", () => {
  it.each(["Max_Tokens", "MAX_TOKENS", "\u017ftream", "max_to\u212aens", "Messages", "N"])("%s", async (name) => {
    const escaped = JSON.stringify(name).replace(
      /[^ -~]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    const written = `{"model":"up-1","messages":[{"role":"user","content":"hi"}],"max_tokens":1,${escaped}:60000}`;
    expect(await refusalOf("/v1/chat/completions", written)).toMatchObject({ status: 400, param: name });
    expect(await refusalOf("/query", { prompt: "hi", params: { [name]: 60_000 } })).toMatchObject({
      status: 400,
      param: `params.${name}`,
    });
  });

  it("in a message, a content part and a tool too", async () => {
    const part = { type: "text", text: "x", Text: "y" };
    const bodies: [object, string][] = [
      [{ messages: [{ ...user, Content: "more" }] }, "messages[0].Content"],
      [{ messages: [{ role: "user", content: [part] }] }, "messages[0].content[0].Text"],
      [{ messages: [user], tools: [{ type: "function", TYPE: "web_search" }] }, "tools[0].TYPE"],
    ];
    for (const [body, param] of bodies) {
      expect(await refusalOf("/v1/chat/completions", { model: "up-1", ...body })).toMatchObject({ status: 400, param });
    }
  });
});

describe("a field that the gateway does not know", () => {
  it("is refused under a limit; the error names the nearest known name and the operator's setting", async () => {
    const refused = await refusalOf("/v1/chat/completions", { model: "up-1", messages: [user], temprature: 1 });
    expect(refused).toMatchObject({ status: 400, code: "invalid_request", param: "temprature" });
    expect(refused.message).toBe(
      "temprature: The gateway does not know this field. Did you mean temperature? It is refused under a limit in USD; " +
        'remove it, or ask the operator to add "temprature" to allow_params',
    );
  });

  it("passes if the operator allows it, and in a run without limits", async () => {
    const body = { model: "up-1", messages: [{ ...user, note: "x" }], enable_this: { at: 1 } };
    expect((await send("/v1/chat/completions", body)).status).toBe(200);
    expect((await send("/query", { messages: body.messages, params: { enable_this: 1 } })).status).toBe(200);
    const free = { model: "up-1", messages: [user], enable_that: true };
    expect((await send("/v1/chat/completions", free, { calls: 3 })).status).toBe(200);
    expect(parsed(world.upstream.calls.at(-1)?.body ?? Buffer.alloc(0))).toEqual(free);
  });

  it("is refused in each slot of a batch, and nothing is spent", async () => {
    const { status, text, token } = await send("/batch", {
      prompts: ["a", "b"],
      params: { chat_template: "{{x}}{{x}}" },
    });
    expect(status).toBe(200);
    const { errors } = z
      .object({ errors: z.array(z.looseObject({ code: z.string(), param: z.string() })) })
      .parse(JSON.parse(text));
    expect(errors).toMatchObject([1, 2].map(() => ({ code: "invalid_request", param: "params.chat_template" })));
    expect(world.upstream.calls).toEqual([]);
    expect((await budgetOf(world.gateway, token)).usd).toMatchObject({ spent: 0, reserved: 0 });
  });
});

describe("a model name with a suffix that changes a router's price", () => {
  it("is refused under a limit, in a request or as a run's default, and passes without one", async () => {
    const refused = { status: 400, param: "model" };
    expect(await refusalOf("/query", { prompt: "hi", model: "up/m:online" })).toMatchObject(refused);
    const chat = { model: "up/m:online", messages: [user] };
    expect(await refusalOf("/v1/chat/completions", chat)).toMatchObject(refused);
    const { token } = await world.gateway.openRun({ budget: { usd: 1 }, default_model: "up/@preset/mine" });
    const { statusCode } = await post(world.gateway, "/query", token, '{"prompt":"hi"}').response;
    expect(statusCode).toBe(400);
    expect(world.upstream.calls).toEqual([]);
    expect((await send("/v1/chat/completions", chat, {})).status).toBe(200);
  });
});

describe("content", () => {
  it("of type thinking counts with all its bytes, though images are allowed", async () => {
    const content = [{ type: "thinking", thinking: "x".repeat(1_000_000) }];
    for (const [path, body] of [
      ["/query", { messages: [{ role: "assistant", content }], max_tokens: 16 }],
      ["/v1/chat/completions", { model: "up-1", messages: [{ role: "assistant", content }], max_tokens: 16 }],
    ] as const) {
      expect(await refusalOf(path, body)).toMatchObject({ status: 402, code: "budget_exhausted" });
    }
  });

  it("of type image counts as configured; a file is refused, because the client chooses its size", async () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } };
    const file = { type: "file", file: { file_data: "data:application/pdf;base64,AAAA", filename: "f.pdf" } };
    const body = (part: object) => ({ model: "up-1", messages: [{ role: "user", content: [part] }], max_tokens: 16 });
    expect((await send("/v1/chat/completions", body(image))).status).toBe(200);
    world.upstream.forget();
    const refused = await refusalOf("/v1/chat/completions", body(file));
    expect(refused).toMatchObject({ status: 422, code: "infeasible" });
    expect(refused.message).toContain("file_tokens_max");
  });
});
