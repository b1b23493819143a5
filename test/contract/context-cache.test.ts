/** Calls that share a context: one of them writes it to its provider's cache, the others read it. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { CACHING_PRICES, startCachingProvider, type CachingProvider } from "../support/caching-provider.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

const TEXT = "Some words of a long document, over and over again. ".repeat(400);
const TOKENS = Math.ceil(TEXT.length / 4);
const COUNT = 24;
const questions = Array.from({ length: COUNT }, (_, index) => `Question ${index}?`);

/** What fails of the next calls. Each test sets its own. */
let failWith: (number: number) => number | null = () => null;
let isSilent: (number: number) => boolean = () => false;
let provider: CachingProvider;
let gateway: Gateway;
beforeAll(async () => {
  provider = await startCachingProvider({
    firstMs: 60,
    wholeMs: 300,
    failWith: (number) => failWith(number),
    isSilent: (number) => isSilent(number),
  });
  const prices = { "*": CACHING_PRICES };
  const UPSTREAMS = {
    claude: { kind: "anthropic", base_url: provider.origin, api_key: "secret:KEY", prices, models: ["claude-*"] },
    gpt: {
      kind: "openai",
      base_url: `${provider.origin}/v1`,
      api_key: "secret:KEY",
      prices,
      models: ["gpt-*"],
      prompt_cache: "breakpoint",
    },
  };
  gateway = await startGateway({ vars: { UPSTREAMS, KEY: "k", WAITING_FETCHES_MAX: "512" } });
});
afterEach(() => {
  provider.forget();
  failWith = () => null;
  isSilent = () => false;
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const reply = z.looseObject({
  id: z.string(),
  status: z.string(),
  usage: z.looseObject({
    cost: z.number(),
    cached_tokens: z.int().optional(),
    cache_write_tokens: z.int().optional(),
    saved_usd: z.number().optional(),
  }),
});

async function ask(model: string, fields: Record<string, unknown> = {}, text = TEXT) {
  const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 } });
  const stored = await gateway.fetch("/contexts", { json: { text }, token });
  const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
  const body = { context: id, prompts: questions, model, max_tokens: 16, ...fields };
  const answer = await gateway.fetch("/batch", { json: body, token });
  const group = reply.parse(await answer.json());
  expect(group.status).toBe("completed");
  const budget = await (await gateway.fetch("/budget", { token })).json();
  const { spent, reserved } = z
    .looseObject({ usd: z.looseObject({ spent: z.number(), reserved: z.number() }) })
    .parse(budget).usd;
  expect(reserved).toBe(0);
  return { group, spent, id };
}

describe.each(["claude/claude-x", "gpt/gpt-x"])("a batch on one context at %s", (model) => {
  it("writes the context once and reads it for every other call, and is charged so", { tags: ["slow"] }, async () => {
    const { group, spent } = await ask(model);
    const bill = provider.bill();
    expect(bill.calls).toBe(COUNT);
    expect([bill.writeTokens, bill.readTokens]).toEqual([TOKENS, TOKENS * (COUNT - 1)]);
    expect(spent).toBeCloseTo(bill.usd, 8);
    expect(group.usage).toMatchObject({ cached_tokens: bill.readTokens, cache_write_tokens: bill.writeTokens });
    const plain = ((bill.inputTokens + bill.readTokens + bill.writeTokens) * CACHING_PRICES.input) / 1_000_000;
    expect((group.usage.saved_usd ?? 0) / (plain - bill.usd)).toBeCloseTo(1, 2);
  });

  it.each([false, true])(
    "serves single calls from the second of a run on (with keys: %s)",
    { tags: ["slow"] },
    async (hasKeys) => {
      const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 }, default_model: model });
      const stored = await gateway.fetch("/contexts", { json: { text: TEXT }, token });
      const { id: context } = z.looseObject({ id: z.string() }).parse(await stored.json());
      const query = async (prompt: string, more: object = {}): Promise<void> => {
        const headers = hasKeys ? { "idempotency-key": encodeURIComponent(prompt) } : {};
        const answer = await gateway.fetch("/query", {
          json: { prompt, context, max_tokens: 16, ...more },
          token,
          headers,
        });
        expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
      };
      await query("First?");
      expect(JSON.stringify(provider.seen)).not.toMatch(/cache_control|prompt_cache/);
      const { writeTokens: before } = provider.bill();
      await Promise.all(questions.map((prompt) => query(prompt)));
      const bill = provider.bill();
      expect([bill.writeTokens - before, bill.readTokens]).toEqual([TOKENS, TOKENS * (COUNT - 1)]);
      await query("Without?", { cache: "off" });
      const budget = await (await gateway.fetch("/budget", { token })).json();
      const { usd } = z.looseObject({ usd: z.looseObject({ spent: z.number(), reserved: z.number() }) }).parse(budget);
      expect([usd.spent, usd.reserved]).toEqual([expect.closeTo(provider.bill().usd, 8), 0]);
    },
  );

  it("has another one lead if the first fails", { tags: ["slow"] }, async () => {
    failWith = (number) => (number === 0 ? 500 : null);
    await ask(model);
    expect([provider.bill().writeTokens, provider.bill().readTokens]).toEqual([TOKENS, TOKENS * (COUNT - 1)]);
  });

  it("waits for a silent one no longer than it is configured to", async () => {
    isSilent = (number) => number === 0;
    await ask(model, { cache: { warm_ms_max: 1 } });
    // The others went out before anything was readable.
    expect(provider.bill().writeTokens).toBeGreaterThan(TOKENS);
  });

  it(
    "has no marks and no leader with `off`, for one call, and for a text that is too short",
    { tags: ["slow"] },
    async () => {
      const { group } = await ask(model, { cache: "off" });
      expect(group.usage.cached_tokens).toBeUndefined();
      await ask(model, { prompts: ["One?"] });
      await ask(model, {}, "short");
      for (const body of provider.seen) {
        const text = JSON.stringify(body);
        expect(text).not.toMatch(/cache_control|prompt_cache/);
      }
    },
  );

  it("leaves the marks of its client alone", async () => {
    const mark = model.startsWith("claude") ? "cache_control" : "prompt_cache_breakpoint";
    const messages = [{ role: "user", content: [{ type: "text", text: "Why?", [mark]: marks[mark] }] }];
    await ask(model, { prompts: undefined, items: [{ messages }, { messages }] });
    expect(provider.bill().calls).toBe(2);
    for (const body of provider.seen) expect(JSON.stringify(body).split(mark).length).toBe(2);
  });
});

const marks = { cache_control: { type: "ephemeral" }, prompt_cache_breakpoint: { mode: "explicit" } };

describe("the marks", () => {
  it("are on the last block that calls share", async () => {
    await ask("claude/claude-x", { cache: { ttl: "1h" } });
    expect(provider.seen[0]?.["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: TEXT, cache_control: { type: "ephemeral", ttl: "1h" } },
          { type: "text", text: expect.stringMatching(/^\n\nQuestion \d+\?$/) },
        ],
      },
    ]);
  });

  it("are in the system message if the text is", { tags: ["slow"] }, async () => {
    const { token } = await gateway.openRun();
    const stored = await gateway.fetch("/contexts", { json: { text: TEXT }, token });
    const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
    const context = { id, as: "system" };
    const body = { context, prompts: questions, max_tokens: 16, system: "Be brief." };
    for (const model of ["claude/claude-x", "gpt/gpt-x"]) {
      provider.forget();
      await (await gateway.fetch("/batch", { json: { ...body, model }, token })).text();
      expect([provider.bill().writeTokens, provider.bill().readTokens]).toEqual([TOKENS, TOKENS * (COUNT - 1)]);
    }
    expect(provider.seen[0]).toMatchObject({
      prompt_cache_key: expect.stringMatching(/^ctx_/),
      prompt_cache_options: { mode: "explicit" },
      messages: [
        {
          role: "system",
          content: [
            { type: "text", text: TEXT, prompt_cache_breakpoint: { mode: "explicit" } },
            { type: "text", text: "\n\nBe brief." },
          ],
        },
        { role: "user", content: expect.stringMatching(/^Question/) },
      ],
    });
  });
});

const SYSTEM = "You answer as the following rules say, in this order and no other. ".repeat(400);
const SYSTEM_TOKENS = Math.ceil(SYSTEM.length / 4);

describe.each(["claude/claude-x", "gpt/gpt-x"])("calls that share a system message at %s", (model) => {
  const marked = { type: "text", text: SYSTEM };
  const mark = model.startsWith("claude") ? "cache_control" : "prompt_cache_breakpoint";

  /** Sends a request under a new run and returns its answer, once nothing of its run is reserved. */
  async function asked(path: string, fields: Record<string, unknown>) {
    provider.forget();
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 }, default_model: model });
    const answer = await gateway.fetch(path, { json: { max_tokens: 16, ...fields }, token });
    const body = z.looseObject({ status: z.string() }).parse(await answer.json());
    const budget = await (await gateway.fetch("/budget", { token })).json();
    const { usd } = z.looseObject({ usd: z.looseObject({ spent: z.number(), reserved: z.number() }) }).parse(budget);
    expect([usd.spent, usd.reserved]).toEqual([expect.closeTo(provider.bill().usd, 8), 0]);
    return body;
  }

  const written = (): number[] => [provider.bill().writeTokens, provider.bill().readTokens];
  const once = [SYSTEM_TOKENS, SYSTEM_TOKENS * (COUNT - 1)];

  it("write it once, and read it for every other call of a batch", async () => {
    const group = await asked("/batch", { system: SYSTEM, prompts: questions });
    expect([group.status, written()]).toEqual(["completed", once]);
    expect(group["usage"]).toMatchObject({ cached_tokens: once[1], cache_write_tokens: once[0] });
    const sent = JSON.stringify(provider.seen[0]?.[mark === "cache_control" ? "system" : "messages"]);
    expect(sent).toContain(JSON.stringify({ ...marked, [mark]: marks[mark] }));
    expect(JSON.stringify(provider.seen[0]?.["messages"])).toContain("Question");
  });

  it("write it once for the elements of a graph's task", async () => {
    const tasks = [
      // It fails, so that its output is the fallback.
      { id: "list", system: "Be brief.", prompt: "List.", fallback: JSON.stringify(questions) },
      { id: "each", system: SYSTEM, foreach: "{{list.output.json}}", prompt: "{{item}}" },
    ];
    failWith = (number) => (number === 0 ? 400 : null);
    const graph = await asked("/dag", { tasks, options: { concurrency: 64 } });
    expect([graph.status, written()]).toEqual(["completed", once]);
  });

  it("share it over the chunks of a context", async () => {
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 }, default_model: model });
    const stored = await gateway.fetch("/contexts", { json: { text: "one two. ".repeat(COUNT) }, token });
    const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
    const over = { context: id, split: { by: "chars", size: 9 } };
    const json = { over, prompt: "Of: {{chunk}}", system: SYSTEM, max_tokens: 16 };
    await (await gateway.fetch("/batch", { json, token })).text();
    expect(written()).toEqual(once);
  });

  it("serves single calls from the second of a run on", { tags: ["slow"] }, async () => {
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 }, default_model: model });
    const query = async (prompt: string): Promise<void> => {
      const json = { prompt, system: SYSTEM, max_tokens: 16 };
      const answer = await gateway.fetch("/query", { json, token });
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
    };
    await query("First?");
    expect(JSON.stringify(provider.seen)).not.toMatch(/cache_control|prompt_cache/);
    const { writeTokens: before } = provider.bill();
    await Promise.all(questions.map((prompt) => query(prompt)));
    expect([provider.bill().writeTokens - before, provider.bill().readTokens]).toEqual(once);
  });

  it(
    "are sent as they are with `off`, alone, and if the message is short or their own",
    { tags: ["slow"] },
    async () => {
      const plain = [
        { system: SYSTEM, prompts: questions, cache: "off" },
        { system: "Be brief.", prompts: questions },
        { system: SYSTEM, prompts: ["One?"] },
      ];
      for (const fields of plain) {
        await asked("/batch", fields);
        expect(JSON.stringify(provider.seen)).not.toMatch(/cache_control|prompt_cache/);
      }
      const items = [{ prompt: "One?" }, { prompt: "Two?" }, { prompt: "Other?", system: "Be brief." }];
      await asked("/batch", { system: SYSTEM, items });
      expect(provider.seen.filter((body) => JSON.stringify(body).includes(mark))).toHaveLength(2);
      expect(written()).toEqual([SYSTEM_TOKENS, SYSTEM_TOKENS]);
    },
  );
});

it("keys that name what calls share are no longer than OpenAI takes", { tags: ["slow"] }, async () => {
  const text = TEXT.repeat(20);
  const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 }, default_model: "gpt/gpt-x" });
  const stored = await gateway.fetch("/contexts", { json: { text }, token });
  const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
  const context = { id, from: 100_001, to: 350_007, as: "system" };
  const json = { context, prompts: questions, max_tokens: 16, schema: { type: "object" }, schema_retries: 0 };
  await (await gateway.fetch("/batch", { json, token })).text();
  expect(provider.seen[0]).toMatchObject({ prompt_cache_key: id });
});

describe("calls that wait for their leader", () => {
  it("say so", async () => {
    isSilent = (number) => number === 0;
    const { token } = await gateway.openRun({ max_parallel: 64 });
    const stored = await gateway.fetch("/contexts", { json: { text: TEXT }, token });
    const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
    const body = { context: id, prompts: questions, model: "claude/claude-x", max_tokens: 16 };
    const headers = { prefer: "respond-async" };
    const opened = await gateway.fetch("/batch", { json: body, token, headers });
    const path = opened.headers.get("location") ?? "";
    const look = async () => JSON.stringify(await (await gateway.fetch(path, { token })).json());
    let seen = "";
    await expect
      .poll(
        async () => {
          const text = await look();
          if (text.includes(`{"context":"${id}"`)) seen = text;
          return seen !== "" || text.includes('"completed"');
        },
        { interval: 5, timeout: 20_000 },
      )
      .toBe(true);
    expect(seen).toContain(`{"context":"${id}","slots":${COUNT - 1}}`);
    // Its calls would count in the next test.
    const ended = async (): Promise<unknown> => JSON.parse(await look());
    await expect.poll(ended, { timeout: 20_000 }).toMatchObject({ status: "completed" });
  });
});

const MARK: Record<string, object> = {
  "claude/claude-x": { cache_control: { type: "ephemeral" } },
  "gpt/gpt-x": { prompt_cache_breakpoint: { mode: "explicit" } },
};

describe.each(["claude/claude-x", "gpt/gpt-x"])("calls at %s whose beginning", (model) => {
  const block = { type: "text", text: TEXT, ...MARK[model] };
  const CALLS: [string, (question: string) => object][] = [
    ["their client has marked", (text) => ({ messages: [{ role: "user", content: [block, { type: "text", text }] }] })],
    [
      "their client has marked in a system message",
      (content) => ({
        messages: [
          { role: "system", content: [block] },
          { role: "user", content },
        ],
      }),
    ],
    ["is a long system message of their own", (prompt) => ({ prompt, system: TEXT })],
  ];

  it.each(CALLS)("%s have a leader in a batch: one writes, the others read", { tags: ["slow"] }, async (_, callOf) => {
    const { token } = await gateway.openRun({ max_parallel: 6, budget: { usd: 5 } });
    const json = { items: questions.map((question) => callOf(question)), model, max_tokens: 16 };
    const answer = await gateway.fetch("/batch", { json, token });
    expect(reply.parse(await answer.json()).status).toBe("completed");
    const bill = provider.bill();
    expect([bill.calls, bill.writeTokens, bill.readTokens]).toEqual([COUNT, TOKENS, TOKENS * (COUNT - 1)]);
    const budget = await (await gateway.fetch("/budget", { token })).json();
    const { usd } = z.looseObject({ usd: z.looseObject({ spent: z.number(), reserved: z.number() }) }).parse(budget);
    expect([usd.spent, usd.reserved]).toEqual([expect.closeTo(bill.usd, 8), 0]);
  });

  it(
    "their client has marked have a leader as single calls, from the first on, and the gateway adds no mark",
    { tags: ["slow"] },
    async () => {
      const { token } = await gateway.openRun({ max_parallel: 6, budget: { usd: 5 }, default_model: model });
      const query = async (text: string): Promise<void> => {
        const messages = [{ role: "user", content: [block, { type: "text", text }] }];
        const answer = await gateway.fetch("/query", { json: { messages, max_tokens: 16 }, token });
        expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
      };
      await Promise.all(questions.map((question) => query(question)));
      expect([provider.bill().writeTokens, provider.bill().readTokens]).toEqual([TOKENS, TOKENS * (COUNT - 1)]);
      expect(JSON.stringify(provider.seen[0]).match(/cache_control|prompt_cache/g)).toHaveLength(1);
    },
  );

  it.each([
    ["in a message", false, true],
    ["in a message", false, false],
    ["in a system message", true, true],
  ])(
    "their client has marked %s have a leader on /v1, from the first on (system %s, stream %s)",
    async (_, isSystem, stream) => {
      const calls = 6;
      const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 5 } });
      const isAnthropic = model.startsWith("claude");
      const relayed = async (text: string): Promise<void> => {
        const content = [{ type: "text", text }];
        const user = { role: "user", content: isSystem ? content : [block, ...content] };
        const system = isAnthropic
          ? { system: [block], messages: [user] }
          : { messages: [{ role: "system", content: [block] }, user] };
        const prompt = isSystem ? system : { messages: [user] };
        const json = { model, max_tokens: 16, ...(stream ? { stream } : {}), ...prompt };
        const path = isAnthropic ? "/v1/messages" : "/v1/chat/completions";
        const answer = await gateway.fetch(path, { json, token });
        expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Fine.")]);
      };
      await Promise.all(questions.slice(0, calls).map((question) => relayed(question)));
      const bill = provider.bill();
      expect([bill.calls, bill.writeTokens, bill.readTokens]).toEqual([calls, TOKENS, TOKENS * (calls - 1)]);
      expect(JSON.stringify(provider.seen[0]).match(/cache_control|prompt_cache/g)).toHaveLength(1);
      const spentUsd = async (): Promise<unknown> => {
        const { usd } = z
          .looseObject({ usd: z.looseObject({ spent: z.number(), reserved: z.number() }) })
          .parse(await (await gateway.fetch("/budget", { token })).json());
        return [usd.spent, usd.reserved];
      };
      // `/v1` settles a moment after its answer.
      await expect.poll(spentUsd).toEqual([expect.closeTo(bill.usd, 8), 0]);
    },
  );
});
