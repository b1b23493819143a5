/** `POST /batch`, answered as JSON: order, isolation, width, and how failures are shown. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { isHit } from "../support/steering.ts";
import { answerOf, documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 64 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const REFUSED = "{{status/400}} please";

describe("a batch of 1,000 with random latency, of which 10 % fail", () => {
  it("returns 200 with every result at its index and every failure in its own slot", { tags: ["slow"] }, async () => {
    const model = "up-1/jitter/40/status/400/percent/10";
    const prompts = Array.from({ length: 1_000 }, (_, index) => `prompt ${index}`);
    const group = groupOf(await run.send("/batch", { json: { prompts, model } }));
    const hit = prompts.filter((prompt) => isHit(prompt, 10));
    expect(hit.length).toBeGreaterThan(60);
    expect(group.results).toEqual(prompts.map((p) => (isHit(p, 10) ? expect.stringMatching(/^\[error\] ./) : p)));
    expect(group.errors.map((error) => error?.code ?? null)).toEqual(
      prompts.map((p) => (isHit(p, 10) ? "upstream_error" : null)),
    );
    expect(group.items.map(({ status }) => status)).toEqual(
      prompts.map((p) => (isHit(p, 10) ? "failed" : "completed")),
    );
    expect(group.status).toBe("partial");
    expect(world.upstream.counters.requests).toBe(1_000);
    expect(new Set(world.upstream.counters.sends.values())).toEqual(new Set([1]));
  });
});

describe("a batch", () => {
  it("reports the sum of its calls' usage, as the run does", async () => {
    const own = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const group = groupOf(await own.send("/batch", { json: { prompts: ["abcd", "efghijkl", REFUSED] } }));
    // The upstream counts a token per four bytes and three per message; a refused call costs nothing.
    expect(group.usage).toEqual({ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12, cost: 0.000015 });
    expect(group.items.map(({ usage }) => usage?.cost)).toEqual([0.000006, 0.000009, 0]);
    const { budget, stats } = await documentOf(own);
    expect(budget.usd).toEqual({ limit: 1, spent: 0.000015, reserved: 0, remaining: 0.999985 });
    expect(stats).toEqual({
      total_queries: 3,
      parallel_batches: 1,
      sequential_queries: 0,
      total_parallel_queries: 3,
      pending_queries: 0,
    });
  });

  it("counts as a parallel group from two calls on; a batch of one is a sequential call", async () => {
    const own = await world.openRun({ default_model: "up-1" });
    groupOf(await own.send("/batch", { json: { prompts: ["one"] } }));
    expect((await documentOf(own)).stats).toMatchObject({ parallel_batches: 0, sequential_queries: 1 });
  });

  it("has an id of the form pg-<epoch ms>-<base36>", async () => {
    const group = groupOf(await run.send("/batch", { json: { prompts: ["a", "b"] } }));
    expect(group.id).toMatch(/^pg-\d{13}-[0-9a-z]{1,6}$/);
    expect(Math.abs(Number(group.id?.slice(3, 16)) - Date.now())).toBeLessThan(60_000);
  });

  it("without prompts returns an empty list, with no group, call or cost", async () => {
    const before = await documentOf(run);
    for (const body of [{ prompts: [] }, { items: [] }]) {
      const group = groupOf(await run.send("/batch", { json: body }));
      expect(group).toMatchObject({ id: null, status: "completed", results: [], usage: { cost: 0 } });
    }
    expect(await documentOf(run)).toEqual(before);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("has status completed, partial or failed, depending on its slots", async () => {
    const statusOf = async (prompts: string[]) => groupOf(await run.send("/batch", { json: { prompts } })).status;
    expect(await statusOf(["a", "b"])).toBe("completed");
    expect(await statusOf(["a", REFUSED])).toBe("partial");
    expect(await statusOf([REFUSED, `${REFUSED} too`])).toBe("failed");
  });

  it("sends each prompt as often as it is listed", async () => {
    const group = groupOf(await run.send("/batch", { json: { prompts: ["same", "same", "same"] } }));
    expect(group.results).toEqual(["same", "same", "same"]);
    expect(world.upstream.counters.sends.get("same")).toBe(3);
  });

  it("transmits every character unchanged in both directions", async () => {
    const prompts = ["naïve 漢字 🦉", '"quotes" \\ and\ttabs', "line\nline\r\n\u2028", "\u0001\u007f\ufffe", " ", ""];
    expect(groupOf(await run.send("/batch", { json: { prompts } })).results).toEqual(prompts);
  });

  it("accepts prompts near the size limit, each in a batch with others", async () => {
    const prompts = ["small", "x".repeat(1_400_000), "y".repeat(1_400_000), "tail"];
    const group = groupOf(await run.send("/batch", { json: { prompts, model: "sim/echo", max_tokens: 1_000_000 } }));
    expect(group.results).toEqual(prompts);
  });

  it("may have more than 10,000 calls, and answers them in order", { tags: ["slow"] }, async () => {
    const wide = await world.openRun({ max_parallel: 64 });
    const prompts = Array.from({ length: 12_000 }, (_, index) => String(index));
    const group = groupOf(await wide.send("/batch", { json: { prompts, model: "sim/echo" } }));
    expect(group.results).toEqual(prompts);
    expect(group.items.map(({ index }) => index)).toEqual(prompts.map(Number));
    expect(group.errors).toEqual(prompts.map(() => null));
  });
});

describe("width", () => {
  const widthOf = async (own: RunAccess, width: number, body: Record<string, unknown>) => {
    // What is in flight stays there until as many are as there may be, and none comes beside them.
    const latch = `width-${JSON.stringify(body)}-${width}`.replaceAll(/[^a-z0-9-]/g, "");
    const prompts = Array.from({ length: 24 }, (_, index) => `{{latch/${latch}}} ${index}`);
    const answer = own.send("/batch", { json: { prompts, ...body } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(width);
    world.upstream.open(latch);
    const group = groupOf(await answer);
    expect([world.upstream.counters.peakInFlight, group.metrics.peak_parallel]).toEqual([width, width]);
    return group.effective_parallel;
  };

  it("is the batch's concurrency, reached and never exceeded", async () => {
    expect(await widthOf(run, 5, { concurrency: 5 })).toBe(5);
  });

  it("is at most the run's if the batch requests more", async () => {
    const narrow = await world.openRun({ default_model: "up-1", max_parallel: 3 });
    expect(await widthOf(narrow, 3, { concurrency: 20 })).toBe(3);
  });

  it("is 64 if neither batch nor run sets it", async () => {
    const plain = await world.openRun({ default_model: "up-1" });
    expect(await widthOf(plain, 24, { on_error: "continue" })).toBe(64);
  });

  it("is not limited by the run if its max_parallel is 0", async () => {
    const open = await world.openRun({ default_model: "up-1", max_parallel: 0 });
    expect(await widthOf(open, 24, {})).toBe(512);
  });

  it("gives each free permit to the next call: no slot waits for a slow one", async () => {
    const prompts = ["{{latch/one-slow}} slow", ...Array.from({ length: 20 }, (_, index) => String(index))];
    const answer = run.send("/batch", { json: { prompts, concurrency: 2 } });
    // In chunks of two, the second chunk would wait for the slow one.
    await expect.poll(() => world.upstream.counters).toMatchObject({ requests: 21, inFlight: 1 });
    world.upstream.open("one-slow");
    expect(groupOf(await answer).results).toEqual(prompts);
  });
});

describe("items", () => {
  it("keep their ids, and may each set model, messages and cap", async () => {
    const items = [
      { id: "first", prompt: "1", model: "up-1" },
      {
        id: "second",
        messages: [
          { role: "system", content: "s" },
          { role: "user", content: "2" },
        ],
        model: "up-2",
      },
      { prompt: "abcdefghij", max_tokens: 1 },
    ];
    const group = groupOf(await run.send("/batch", { json: { items } }));
    expect(group.results).toEqual(["1", "2", "abcd"]);
    expect(group.items).toMatchObject([
      { id: "first", model: "up-1", finish_reason: "stop" },
      { id: "second", model: "up-2" },
      { id: null, model: "up-1", finish_reason: "length" },
    ]);
  });

  it("use the top-level fields as their defaults", async () => {
    const seen: unknown[] = [];
    const watched = await startOwnWorld((call) => {
      seen.push([call.prompt, call.model, call.capTokens, call.messageCount]);
      return {};
    });
    const own = await watched.openRun();
    const items = [{ prompt: "a" }, { prompt: "b", model: "up-2", max_tokens: 9 }];
    await own.send("/batch", { json: { items, model: "up-1", max_tokens: 5, system: "s", concurrency: 1 } });
    expect(seen).toEqual([
      ["a", "up-1", 5, 2],
      ["b", "up-2", 9, 2],
    ]);
  });

  it("start by priority, and in input order if it is equal", async () => {
    const started: string[] = [];
    const watched = await startOwnWorld(({ prompt }) => {
      started.push(prompt);
      return { delayMs: 5 };
    });
    const own = await watched.openRun({ default_model: "up-1" });
    const priorities = ["low", "normal", "critical", 0, "high", "P0", "normal"];
    const items = priorities.map((priority, index) => ({ prompt: `${priority} ${index}`, priority }));
    const group = groupOf(await own.send("/batch", { json: { items, concurrency: 1 } }));
    expect(started).toEqual(["critical 2", "P0 5", "high 4", "normal 1", "normal 6", "low 0", "0 3"]);
    expect(group.results).toEqual(items.map(({ prompt }) => prompt));
  });
});

describe("a failed slot is shown", () => {
  const show = async (body: Record<string, unknown>, own = run) => {
    const group = groupOf(await own.send("/batch", { json: { prompts: ["a", REFUSED, "c"], ...body } }));
    expect(group.errors).toEqual([
      null,
      expect.objectContaining({ code: "upstream_error", status: 400, retryable: false, attempts: 1 }),
      null,
    ]);
    return { results: group.results, message: group.errors[1]?.message };
  };

  it.each([
    [undefined, "[error] "],
    ["bracket", "[error] "],
    ["rlm", "Error: "],
    ["dspy", "[ERROR] "],
    ["verifiers", "Error in sub-LLM call: "],
  ])("by error_style %s as text that begins with %o", async (error_style, prefix) => {
    const { results, message } = await show(error_style === undefined ? {} : { error_style });
    expect(results).toEqual(["a", prefix + message, "c"]);
  });

  it.each(["null", null])("by error_style %o as null", async (error_style) => {
    expect((await show({ error_style })).results).toEqual(["a", null, "c"]);
  });

  it("by error_style settled in the form of Promise.allSettled, like successful slots", async () => {
    const { results, message } = await show({ error_style: "settled" });
    expect(results).toEqual([
      { status: "fulfilled", value: "a", index: 0 },
      { status: "rejected", reason: expect.objectContaining({ message, code: "upstream_error" }), index: 1 },
      { status: "fulfilled", value: "c", index: 2 },
    ]);
  });

  it("in the run's style if the batch names none", async () => {
    const own = await world.openRun({ default_model: "up-1", error_style: "rlm" });
    expect((await show({}, own)).results[1]).toMatch(/^Error: /);
    expect((await show({ error_style: "bracket" }, own)).results[1]).toMatch(/^\[error\] /);
  });

  it("by error_style throw as the failure of the whole call, with the first error, after all have ended", async () => {
    const prompts = ["{{delay/150}} a", "{{status/422/delay/80}}", "{{status/400}} early but later in the list", "d"];
    const answer = await run.send("/batch", { json: { prompts, error_style: "throw" } });
    expect([answer.status, errorOf(answer).status]).toEqual([502, 422]);
    expect(world.upstream.counters).toMatchObject({ requests: 4, inFlight: 0, abandoned: 0 });
  });

  it("by error_style throw, not at all if all slots succeed", async () => {
    const group = groupOf(await run.send("/batch", { json: { prompts: ["a"], error_style: "throw" } }));
    expect(group.results).toEqual(["a"]);
  });

  it("so that it differs from a model's text that begins like an error", async () => {
    const group = groupOf(await run.send("/batch", { json: { prompts: ["[error] I said so"] } }));
    expect([group.results, group.errors]).toEqual([["[error] I said so"], [null]]);
  });
});

describe("on_error abort", () => {
  it(
    "starts nothing after the first failure, lets calls in flight finish, and reports the rest as cancelled",
    { tags: ["slow"] },
    async () => {
      const prompts = ["{{delay/1000}} running", REFUSED, ...Array.from({ length: 30 }, (_, index) => `late ${index}`)];
      const group = groupOf(await run.send("/batch", { json: { prompts, concurrency: 2, on_error: "abort" } }));
      expect(group.results[0]).toBe(prompts[0]);
      expect(group.errors[1]?.code).toBe("upstream_error");
      const late = group.items.slice(2);
      const sent = late.filter(({ status }) => status === "completed").length;
      expect(sent).toBeLessThanOrEqual(2);
      expect(late.filter(({ status }) => status === "cancelled").length).toBe(30 - sent);
      expect(
        group.errors
          .slice(2)
          .filter((error) => error !== null)
          .map(({ code }) => code),
      ).toEqual(Array.from({ length: 30 - sent }, () => "cancelled"));
      expect(world.upstream.counters.requests).toBe(2 + sent);
      expect(await documentOf(run)).toMatchObject({ stats: { pending_queries: 0 }, budget: { usd: { reserved: 0 } } });
    },
  );

  it("is not the default: a batch continues after a failure", async () => {
    const prompts = [REFUSED, "a", "b"];
    expect(groupOf(await run.send("/batch", { json: { prompts, concurrency: 1 } })).results.slice(1)).toEqual([
      "a",
      "b",
    ]);
  });
});

describe("concurrent batches", () => {
  it("of one run do not mix: 40 batches of 25 lose and duplicate nothing", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: "up-1", max_parallel: 32 });
    const lists = Array.from({ length: 40 }, (_, list) => Array.from({ length: 25 }, (_, at) => `${list}/${at}`));
    const groups = await Promise.all(lists.map((prompts) => own.send("/batch", { json: { prompts } })));
    expect(groups.map((answer) => groupOf(answer).results)).toEqual(lists);
    expect(new Set(groups.map((answer) => groupOf(answer).id)).size).toBe(40);
    expect(new Set(world.upstream.counters.sends.values())).toEqual(new Set([1]));
    expect(world.upstream.counters.peakInFlight).toBeLessThanOrEqual(32);
  });

  it("continue when their client disconnects, and their cost is charged", async () => {
    const own = await world.openRun({ default_model: "up-1", max_parallel: 2 });
    const prompts = ["a", "b", "c"].map((name) => `{{latch/left-batch}} ${name}`);
    const client = new AbortController();
    const { signal } = client;
    const leaving = world.gateway.fetch("/batch", { token: own.token, json: { prompts }, signal });
    const left = expect(leaving.then(answerOf)).rejects.toThrow();
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    client.abort();
    await left;
    world.upstream.open("left-batch");
    await expect.poll(() => world.upstream.counters.requests).toBe(3);
    await expect
      .poll(() => documentOf(own))
      .toMatchObject({ metrics: { attempts: 3 }, stats: { pending_queries: 0 }, budget: { usd: { reserved: 0 } } });
  });
});

/** A world of one test's own, whose provider answers as the test says. */
async function startOwnWorld(handler: Parameters<typeof startWorld>[0]): Promise<World> {
  const own = await startWorld(handler);
  onTestFinished(() => own.stop());
  return own;
}
