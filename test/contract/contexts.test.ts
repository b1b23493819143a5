/** `/contexts`: texts that are stored once, and the calls that refer to them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { CONTEXT_ROW_BYTES_MAX } from "../../src/limits.ts";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 16 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const context = z.strictObject({
  id: z.string().regex(/^ctx_[0-9a-f]{32}$/),
  object: z.literal("context"),
  name: z.string().nullable(),
  chars: z.int(),
  bytes: z.int(),
  tokens_max: z.int(),
  created_at: z.iso.datetime(),
});

const TEXT = "Ünïcode 😀 line one\r\nline two\r\n\r\nA second paragraph.\n";

async function store(text: string, access = run): Promise<z.infer<typeof context>> {
  const answer = await access.send("/contexts", { json: { text } });
  expect([200, 201]).toContain(answer.status);
  return context.parse(answer.json);
}

/** What the provider got, without the calls' order. */
const prompts = (): string[] => [...world.upstream.counters.sends.keys()].sort();

const expectUntouched = async (access: RunAccess, answer: Answer, status: number): Promise<void> => {
  expect(answer.status).toBe(status);
  expect(world.upstream.counters.requests).toBe(0);
  expect((await documentOf(access)).budget.usd).toMatchObject({ spent: 0, reserved: 0 });
};

describe("POST /contexts", () => {
  it("stores a text once: the same text has the same id, and another run has its own", async () => {
    const own = await world.openRun();
    const first = await own.send("/contexts", { json: { text: TEXT, name: "sample" } });
    expect(first.status).toBe(201);
    const stored = context.parse(first.json);
    expect(stored).toMatchObject({
      name: "sample",
      chars: [...TEXT].length,
      bytes: new TextEncoder().encode(TEXT).length,
    });
    expect(stored.tokens_max).toBeLessThanOrEqual(stored.bytes + 10);
    const again = await own.send("/contexts", {
      method: "POST",
      body: TEXT,
      headers: { "content-type": "text/plain" },
    });
    expect([again.status, again.json]).toEqual([200, stored]);
    expect((await own.send(`/contexts/${stored.id}`)).json).toEqual(stored);
    const other = await world.openRun();
    for (const method of ["GET", "DELETE"]) {
      expect(errorOf(await other.send(`/contexts/${stored.id}`, { method })).code).toBe("not_found");
    }
    expect((await other.send("/contexts")).json).toEqual({ object: "list", data: [], has_more: false });
  });

  it("lists newest first, page by page, and forgets what is deleted", async () => {
    const own = await world.openRun();
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) ids.unshift((await store(text, own)).id);
    const list = z.strictObject({ object: z.literal("list"), data: z.array(context), has_more: z.boolean() });
    const page = list.parse((await own.send("/contexts?limit=2")).json);
    expect([page.data.map(({ id }) => id), page.has_more]).toEqual([ids.slice(0, 2), true]);
    const rest = list.parse((await own.send(`/contexts?limit=2&after=${ids[1]}`)).json);
    expect([rest.data.map(({ id }) => id), rest.has_more]).toEqual([ids.slice(2), false]);
    expect((await own.send(`/contexts/${ids[0]}`, { method: "DELETE" })).json).toEqual({
      id: ids[0],
      object: "context",
      deleted: true,
    });
    expect(errorOf(await own.send(`/contexts/${ids[0]}`)).code).toBe("not_found");
    expect(errorOf(await own.send(`/contexts?after=${ids[0]}`)).code).toBe("not_found");
    expect(errorOf(await own.send("/contexts?limit=0")).param).toBe("limit");
  });

  it.each([
    ["nothing", {}, "text"],
    ["both", { text: "a", file_id: "file-1" }, "file_id"],
    ["an empty text", { text: "" }, "text"],
    ["a lone surrogate", { text: "a\ud83d" }, "text"],
    ["NUL", { text: "a\0" }, "text"],
    ["an unknown field", { text: "a", nmae: "b" }, "nmae"],
  ])("refuses %s", async (_, json, param) => {
    const error = errorOf(await run.send("/contexts", { json }));
    expect([error.code, error.param]).toEqual(["invalid_request", param]);
  });

  it("refuses a body that is not UTF-8, and one that does not fit where the gateway has no R2", async () => {
    const headers = { "content-type": "text/plain" };
    const broken = await run.send("/contexts", { method: "POST", body: Uint8Array.from([0x61, 0xff]), headers });
    expect(errorOf(broken)).toMatchObject({ code: "invalid_request", message: expect.stringContaining("UTF-8") });
    const large = await run.send("/contexts", { method: "POST", body: "x".repeat(CONTEXT_ROW_BYTES_MAX + 1), headers });
    expect(errorOf(large).code).toBe("misconfigured");
    const most = await run.send("/contexts", { method: "POST", body: "x".repeat(CONTEXT_ROW_BYTES_MAX), headers });
    expect(most.status).toBe(201);
  });
});

describe("a call that refers to a context", () => {
  it("gets the text before its prompt, or in the system message, or before its messages", async () => {
    const { id } = await store(TEXT);
    const ask = async (fields: Record<string, unknown>) =>
      replyOf(await run.send("/query", { json: { model: "sim/echo", ...fields } }));
    expect((await ask({ context: id, prompt: "Why?" })).text).toBe(`${TEXT}\n\nWhy?`);
    expect((await ask({ context: { id, as: "system" }, prompt: "Why?" })).text).toBe("Why?");
    expect((await ask({ context: id, messages: [{ role: "user", content: "Why?" }] })).text).toBe("Why?");
    const usage = await ask({ context: id, messages: [{ role: "user", content: "Why?" }] });
    expect(usage.usage.prompt_tokens).toBeGreaterThan((await ask({ prompt: "Why?" })).usage.prompt_tokens + 5);
  });

  it("gets the code points of its range, which cannot be half a character", async () => {
    const { id } = await store(TEXT);
    const points = [...TEXT];
    const items = [
      { context: { id, from: 8, to: 9 }, prompt: "a" },
      { context: { id, from: 40 }, prompt: "b" },
      { context: { id, to: 9 }, prompt: "c" },
      { context: { id, from: points.length }, prompt: "d" },
      { context: { id, chunk: 1, split: { by: "chars", size: 20 } }, prompt: "e" },
      { context: { id, chunk: 1, split: { by: "paragraphs", size: 34 } }, prompt: "f" },
    ];
    const group = groupOf(await run.send("/batch", { json: { items } }));
    expect(group.results).toEqual([
      "😀\n\na",
      `${points.slice(40).join("")}\n\nb`,
      `${points.slice(0, 9).join("")}\n\nc`,
      "\n\nd",
      `${points.slice(20, 40).join("")}\n\ne`,
      "A second paragraph.\n\n\nf",
    ]);
  });

  it("shares it with a thousand others for one upload and a short request", { tags: ["slow"] }, async () => {
    const text = "Some words of a long document, again and again. ".repeat(2_000);
    const { id } = await store(text);
    const questions = Array.from({ length: 200 }, (_, index) => `Question ${index}?`);
    const body = { context: id, prompts: questions };
    expect(JSON.stringify(body).length).toBeLessThan(10_000);
    expect(groupOf(await run.send("/batch", { json: body })).status).toBe("completed");
    expect(prompts()).toEqual(questions.map((question) => `${text}\n\n${question}`).sort());
  });

  it.each([
    ["an unknown context", (): unknown => `ctx_${"0".repeat(32)}`, 404, null],
    ["a range behind the end", (id: string): unknown => ({ id, from: 0, to: 1_000 }), 400, "context.to"],
    ["a range that ends before it begins", (id: string): unknown => ({ id, from: 5, to: 4 }), 400, "context.from"],
    ["a chunk that is not there", (id: string): unknown => ({ id, chunk: 1 }), 400, "context.chunk"],
    ["a name that is no id", (): unknown => "doc", 400, "context"],
    ["a chunk and a range", (id: string): unknown => ({ id, chunk: 0, from: 1 }), 400, "context.chunk"],
    ["an overlap of its size", (id: string): unknown => ({ id, chunk: 0, split: { size: 5, overlap: 5 } }), 400, null],
  ])("is refused for %s before anything is reserved", async (_, contextOf, status, param) => {
    const own = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const { id } = await store(TEXT, own);
    const answer = await own.send("/query", { json: { prompt: "a", context: contextOf(id) } });
    await expectUntouched(own, answer, status);
    if (param !== null) expect(errorOf(answer).param).toBe(param);
    const batch = { items: [{ prompt: "fine" }, { prompt: "a", context: contextOf(id) }] };
    const refused = await own.send("/batch", { json: batch });
    await expectUntouched(own, refused, status);
    if (param !== null) expect(errorOf(refused).param).toBe(`items.1.${param}`.replace("items.1.", "items[1]."));
  });

  it("is refused for a context of another run as for one that does not exist", async () => {
    const { id } = await store(TEXT);
    const other = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await expectUntouched(other, await other.send("/query", { json: { prompt: "a", context: id } }), 404);
    await expectUntouched(other, await other.send("/batch", { json: { prompts: ["a"], context: id } }), 404);
    const over = { over: { context: id }, prompt: "{{chunk}}" };
    await expectUntouched(other, await other.send("/batch", { json: over }), 404);
    const dag = { tasks: [{ id: "a", prompt: "a", context: id }] };
    await expectUntouched(other, await other.send("/dag", { json: dag }), 404);
  });

  it("reserves the tokens of the text", async () => {
    const own = await world.openRun({ default_model: "up-1", budget: { usd: 0.01 } });
    const { id, tokens_max: tokens } = await store("0123456789abcdef".repeat(2_000), own);
    expect(tokens).toBeLessThanOrEqual(32_000);
    const refused = await own.send("/query", { json: { prompt: "a", max_tokens: 16, context: id } });
    expect(errorOf(refused)).toMatchObject({ code: "budget_exhausted" });
    expect(world.upstream.counters.requests).toBe(0);
    replyOf(await own.send("/query", { json: { prompt: "a", max_tokens: 16, context: { id, to: 1_000 } } }));
    const quote = await own.send("/batch?quote=1", { json: { prompts: ["a"], max_tokens: 16, context: id } });
    expect(z.looseObject({ worst_usd: z.number() }).parse(quote.json).worst_usd).toBeGreaterThan(0.032);
  });

  it("can be a task of a graph", async () => {
    const { id } = await store(TEXT);
    const tasks = [
      { id: "a", prompt: "first", context: { id, to: 3 } },
      { id: "b", prompt: "after {{a.output}}", context: { id, from: 8, to: 9 } },
    ];
    const answer = await run.send("/dag", { json: { tasks } });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("Ünï\\n\\nfirst");
    expect(answer.text).toContain("😀\\n\\nafter Ünï\\n\\nfirst");
  });

  it("can be a task that is added to a graph", async () => {
    const { id } = await store(TEXT);
    const tasks = [{ id: "a", prompt: "{{latch/added}} first" }];
    const opened = await run.send("/dag", {
      json: { tasks, context: { id, to: 3 } },
      headers: { prefer: "respond-async" },
    });
    const path = z.string().parse(opened.headers.get("location")).replace("/groups/", "/dag/");
    const added = { id: "b", prompt: "second", context: { id, from: 8, to: 9 } };
    const change = (task: object) =>
      run.send(path, { method: "PATCH", json: { version: 1, operations: [{ op: "add_task", task }] } });
    const outside = errorOf(await change({ ...added, context: { id, to: 1_000 } }));
    expect(outside.param).toBe("operations[0].task.context.to");
    expect((await change(added)).status).toBe(200);
    await expect.poll(() => prompts().includes("😀\n\nsecond")).toBe(true);
    world.upstream.open("added");
    expect((await run.send(`${path}?wait_ms=20000`)).text).toContain("Ünï\\n\\n");
  });

  it("fails at no cost if the context is deleted before it is sent", async () => {
    const own = await world.openRun({ default_model: "up-1", max_parallel: 1, budget: { usd: 1 } });
    const { id } = await store(TEXT, own);
    const items = [
      { prompt: "{{latch/first}} one", context: { id, to: 3 } },
      { prompt: "two", context: { id, from: 4 } },
      { prompt: "three", context: { id, from: 5 } },
    ];
    const opened = own.send("/batch", { json: { items } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    expect((await own.send(`/contexts/${id}`, { method: "DELETE" })).status).toBe(200);
    world.upstream.open("first");
    const group = groupOf(await opened);
    expect(group.errors[0]).toBeNull();
    for (const error of group.errors.slice(1)) expect(error).toMatchObject({ code: "not_found" });
    expect(group.items.slice(1).map(({ usage }) => usage?.cost ?? 0)).toEqual([0, 0]);
    expect((await documentOf(own)).budget.usd.reserved).toBe(0);
  });
});

describe("a batch over the chunks of a context", () => {
  it("makes one call of each chunk, in order", async () => {
    const text = Array.from({ length: 300 }, (_, index) => `line ${index} of the document 😀`).join("\n");
    const { id } = await store(text);
    const answer = await run.send("/batch", {
      json: {
        over: { context: id, split: { by: "lines", size: 500 } },
        prompt: "<{{chunk}}>{{chunk}}",
      },
    });
    const group = groupOf(answer);
    const chunks = group.results.map((result) => String(result).slice(1, String(result).indexOf(">")));
    expect(chunks.join("")).toBe(text);
    expect(chunks.length).toBeGreaterThan(15);
    expect(group.results).toEqual(chunks.map((chunk) => `<${chunk}>${chunk}`));
    expect(prompts().length).toBe(chunks.length);
  });

  it("puts a chunk into its prompt as it is, whatever the chunk says", async () => {
    const text = '$& {{chunk}} {{item.output}} \\u0000 "quoted" </x>';
    const { id } = await store(text);
    const group = groupOf(await run.send("/batch", { json: { over: { context: id }, prompt: "a {{chunk}} b" } }));
    expect(group.results).toEqual([`a ${text} b`]);
  });

  it.each([
    ["a prompt without a place for it", { over: {}, prompt: "a" }, "prompt"],
    ["prompts beside it", { over: {}, prompt: "{{chunk}}", prompts: ["a"] }, "prompts"],
    ["a prompt without it", { prompt: "a" }, "prompt"],
    ["a size of nothing", { over: { split: { size: 0 } }, prompt: "{{chunk}}" }, "over.split.size"],
  ])("is refused for %s", async (_, body: { over?: object; prompt: string }, param) => {
    const { id } = await store(TEXT);
    const json = body.over === undefined ? body : { ...body, over: { context: id, ...body.over } };
    const error = errorOf(await run.send("/batch", { json }));
    expect([error.code, error.param]).toEqual(["invalid_request", param]);
  });

  it("is refused for more chunks than a batch may have", async () => {
    const { id } = await store("x".repeat(60_000));
    const over = { over: { context: id, split: { size: 1 } }, prompt: "{{chunk}}" };
    expect(errorOf(await run.send("/batch", { json: over }))).toMatchObject({ param: "split.size" });
  });
});
