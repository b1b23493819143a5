/** The operator's rules for money: budgets and prices in the configuration, and what cannot be bounded. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { answerOf, documentOf, errorOf, replyOf, startOwnGateway, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

/** Opens a run at a gateway of its own with these vars. */
async function opener(vars: Record<string, unknown>) {
  const gateway = await startOwnGateway({ vars });
  return async (budget?: Record<string, number>) =>
    answerOf(await gateway.fetch("/runs", { token: gateway.adminKey, json: budget === undefined ? {} : { budget } }));
}
const limitOf = z.looseObject({ budget: z.looseObject({ usd: z.looseObject({ limit: z.number().nullable() }) }) });

describe("a budget in the configuration", () => {
  it("DEFAULT_BUDGET_USD applies to a run that names none", async () => {
    const open = await opener({ DEFAULT_BUDGET_USD: "0.25" });
    expect(limitOf.parse((await open()).json).budget.usd.limit).toBe(0.25);
    expect(limitOf.parse((await open({ usd: 7 })).json).budget.usd.limit).toBe(7);
  });

  it("MAX_BUDGET_USD is the largest budget of a run, and the default of one that names none", async () => {
    const open = await opener({ MAX_BUDGET_USD: 2 });
    expect(limitOf.parse((await open({ usd: 2 })).json).budget.usd.limit).toBe(2);
    const refused = await open({ usd: 2.000000001 });
    expect([refused.status, errorOf(refused).param]).toEqual([400, "budget.usd"]);
    expect(limitOf.parse((await open()).json).budget.usd.limit).toBe(2);
  });

  it(
    "ROOT_BUDGET_USD_PER_DAY bounds all runs together, and requires a limit for each",
    { tags: ["slow"] },
    async () => {
      const gateway = await startOwnGateway({ vars: { ROOT_BUDGET_USD_PER_DAY: "1" } });
      const sendAsOperator = async (path: string, json?: unknown, method = "POST") =>
        answerOf(
          await gateway.fetch(path, { token: gateway.adminKey, method, ...(json === undefined ? {} : { json }) }),
        );
      const first = await sendAsOperator("/runs", { budget: { usd: 0.75 } });
      expect(first.status).toBe(201);
      const refused = await sendAsOperator("/runs", { budget: { usd: 0.5 } });
      expect(refused.status).toBe(402);
      expect(errorOf(refused)).toMatchObject({
        code: "budget_exhausted",
        param: "budget.usd",
        limit: 1,
        remaining: 0.25,
      });
      expect((await sendAsOperator("/runs", { budget: { usd: 0.25 } })).status).toBe(201);
      expect((await sendAsOperator("/runs", { budget: { usd: 0.000000001 } })).status).toBe(402);
      const without = await sendAsOperator("/runs", {});
      expect([without.status, errorOf(without).param]).toEqual([400, "budget.usd"]);
      const { id } = z.looseObject({ id: z.string() }).parse(first.json);
      expect((await sendAsOperator(`/runs/${id}`, { budget: { usd: 0.8 } }, "PATCH")).status).toBe(402);
      await sendAsOperator(`/runs/${id}/close`);
      await expect.poll(async () => (await sendAsOperator("/runs", { budget: { usd: 0.75 } })).status).toBe(201);
    },
  );

  for (const variable of ["DEFAULT_BUDGET_USD", "MAX_BUDGET_USD", "ROOT_BUDGET_USD_PER_DAY"]) {
    it(
      `${variable} that is not an amount fails every request of a run with a 500 that names it`,
      { tags: ["slow"] },
      async () => {
        for (const value of [-1, "-0.01", "a dollar", "NaN", "Infinity", 1e300]) {
          const refused = await (await opener({ [variable]: value }))({ usd: 0 });
          expect([value, refused.status, errorOf(refused)]).toEqual([
            value,
            500,
            expect.objectContaining({ code: "misconfigured", variable }),
          ]);
        }
      },
    );
  }
});

describe("prices in the configuration", () => {
  const vars = (prices: unknown) => ({ UPSTREAMS: { up: { kind: "openai", base_url: "http://127.0.0.1:9", prices } } });

  for (const [what, price, field] of [
    ["negative", { input: -1, output: 1 }, "input"],
    ["missing", { input: 1 }, "output"],
    ["text", { input: 1, output: "1" }, "output"],
    ["absurd", { input: 1, output: 1e9 }, "output"],
    ["unknown by name", { input: 1, output: 1, tax: 1 }, "tax"],
  ] as const) {
    it(`that are ${what} fail every request of a run with a 500 that names the field`, async () => {
      const refused = await (await opener(vars({ m: price })))();
      expect(refused.status).toBe(500);
      expect(errorOf(refused).message).toContain(`UPSTREAMS.up.prices.m.${field}`);
    });
  }

  it("that are missing make the gateway refuse the model, unless the run allows models without a price", async () => {
    const strict = await world.openRun({ default_model: "free-1" });
    const refused = await strict.send("/query", { json: { prompt: "p" } });
    expect([refused.status, errorOf(refused).code]).toEqual([422, "unpriced_model"]);
    const free = await world.openRun({ default_model: "free-1", unpriced: "free", budget: { usd: 0 } });
    expect(replyOf(await free.send("/query", { json: { prompt: "p" } })).usage.cost).toBe(0);
    expect((await documentOf(free)).budget.usd).toEqual({ limit: 0, spent: 0, reserved: 0, remaining: 0 });
  });

  it("come from a catalogue whose date is in /limits", async () => {
    expect((await world.send("/limits")).json).toMatchObject({
      prices_date: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
    });
  });
});

describe("input whose cost its bytes do not bound:", () => {
  const messages = [
    { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
  ];

  it("an image is refused under a limit in USD or prompt tokens, and sent without a limit", async () => {
    for (const budget of [{ usd: 1 }, { prompt_tokens: 1_000 }]) {
      const run = await world.openRun({ default_model: "up-1", budget });
      const refused = await run.send("/query", { json: { messages } });
      expect([refused.status, errorOf(refused).code]).toEqual([422, "infeasible"]);
      expect(errorOf(refused).message).toContain("media_tokens_max");
      expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 0, reserved: 0 });
    }
    expect(world.upstream.counters.requests).toBe(0);
    const run = await world.openRun({ default_model: "up-1", budget: { calls: 5 } });
    expect((await run.send("/query", { json: { messages } })).status).toBe(200);
  });

  it("an image counts as media_tokens_max if that is configured", { tags: ["slow"] }, async () => {
    const up = { kind: "openai", base_url: world.upstream.baseUrl, media_tokens_max: 1_000 };
    const UPSTREAMS = { up: { ...up, prices: { "*": { input: 1, output: 2 } } } };
    const gateway = await startOwnGateway({ vars: { UPSTREAMS, DEFAULT_MODEL: "up/m" } });
    const send = async (usd: number) => {
      const { token } = await gateway.openRun({ budget: { usd } });
      return answerOf(await gateway.fetch("/query", { token, json: { messages, max_tokens: 16 } }));
    };
    expect((await send(0.002)).status).toBe(200);
    expect((await send(0.001)).status).toBe(402);
  });

  for (const type of ["web_search", "code_interpreter"]) {
    it(`the provider-hosted tool ${type} is refused, because its uses are billed separately`, async () => {
      const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
      const refused = await run.send("/query", { json: { prompt: "p", params: { tools: [{ type }] } } });
      expect([refused.status, errorOf(refused).code]).toEqual([400, "invalid_request"]);
      expect(errorOf(refused).param).toMatch(/^params\.tools/);
      expect(world.upstream.counters.requests).toBe(0);
    });
  }
});

describe("the completion cap", () => {
  for (const [configured, field] of [
    [undefined, "max_tokens"],
    ["max_completion_tokens", "max_completion_tokens"],
  ] as const) {
    it(`is sent clamped, as ${field}, if the upstream's cap_field is ${configured ?? "missing"}`, async () => {
      const upstream = await startRecorder();
      const up = { kind: "openai", base_url: upstream.url, prices: { "*": { input: 1, output: 2 } } };
      const UPSTREAMS = { up: configured === undefined ? up : { ...up, cap_field: configured } };
      const gateway = await startOwnGateway({ vars: { UPSTREAMS, DEFAULT_MODEL: "up/m" } });
      const { token } = await gateway.openRun({ budget: { usd: 0.000228 } });
      const json = { prompt: "x".repeat(12), max_tokens: 1_000 };
      expect((await gateway.fetch("/query", { token, json })).status).toBe(200);
      // Of 228 micro-USD, 20 are for 12 bytes and a message, 128 for a template; the other 80 pay for 40 tokens.
      const caps = upstream.bodies.map(({ max_tokens, max_completion_tokens }) => ({
        max_tokens,
        max_completion_tokens,
      }));
      expect(caps).toEqual([{ max_tokens: undefined, max_completion_tokens: undefined, [field]: 40 }]);
    });
  }
});

describe("x-fanout-budget-remaining-usd", () => {
  it("is a header of every reply under a run", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const answers = [
      await run.send("/run"),
      await run.send("/budget"),
      await run.send("/query", { json: { prompt: "abcd" } }),
      await run.send("/batch", { json: { prompts: ["abcd"] } }),
      await run.send("/batch?quote=1", { json: { prompts: ["abcd"] } }),
      await run.send("/query", { json: {} }),
      await run.send("/runs/run_0"),
      await run.send("/runs", { json: { budget: { usd: 0.5 } } }),
      await run.send(`/runs/${run.id}`, { method: "PATCH", json: {} }),
      await run.send(`/runs/${run.id}/close`, { method: "POST" }),
    ];
    for (const { headers } of answers) {
      expect(headers.get("x-fanout-run")).toBe(run.id);
      expect(headers.get("x-fanout-budget-remaining-usd")).toMatch(/^(\d+(\.\d{1,9})?|Infinity)$/);
    }
    expect(answers[2]?.headers.get("x-fanout-budget-remaining-usd")).toBe("0.999994");
  });
});

const sent = z.looseObject({ max_tokens: z.number().optional(), max_completion_tokens: z.number().optional() });

/** A provider that remembers the bodies it was sent. It ends with the test. */
async function startRecorder(): Promise<{ url: string; bodies: z.infer<typeof sent>[] }> {
  const bodies: z.infer<typeof sent>[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.once("end", () => {
      bodies.push(sent.parse(JSON.parse(text)));
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ model: "m", choices, usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the recorder has no TCP address");
  return { url: `http://127.0.0.1:${address.port}/v1`, bodies };
}
