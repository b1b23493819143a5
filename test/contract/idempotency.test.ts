/** `Idempotency-Key`: a repeated request gets the result of the first, and nothing is sent or charged twice. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { ASYNC, endOf } from "./following.ts";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 8 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

let keys = 0;
const newKey = () => `key-${(keys += 1)}`;
const replayed = ({ headers }: Answer) => headers.get("idempotent-replayed");
const json = (body: unknown, key: string, more: Record<string, string> = {}) => ({
  json: body,
  headers: { "idempotency-key": key, ...more },
});

describe("the idempotency key of a /query", () => {
  it("that has ended replays its answer, at no cost", async () => {
    const asked = json({ prompt: "once", max_tokens: 9 }, newKey());
    const first = await run.send("/query", asked);
    expect([replyOf(first).text, replayed(first)]).toEqual(["once", null]);
    const { budget, metrics } = await documentOf(run);
    for (let time = 0; time < 3; time += 1) {
      const again = await run.send("/query", asked);
      expect([again.status, again.text, replayed(again)]).toEqual([200, first.text, "true"]);
    }
    expect(world.upstream.counters.requests).toBe(1);
    expect(await documentOf(run)).toMatchObject({ budget, metrics: { attempts: metrics.attempts } });
  });

  it("that still runs attaches later requests: twenty concurrent requests are one call", async () => {
    const asked = json({ prompt: "{{delay/300}} together" }, newKey());
    const answers = await Promise.all(Array.from({ length: 20 }, () => run.send("/query", asked)));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(answers.filter((answer) => replayed(answer) === null)).toHaveLength(1);
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("works with plain text, in requests and replies", async () => {
    const headers = { "content-type": "text/plain", accept: "text/plain", "idempotency-key": newKey() };
    const first = await run.send("/query", { method: "POST", headers, body: "plain" });
    const again = await run.send("/query", { method: "POST", headers, body: "plain" });
    expect([first.text, again.text, replayed(again)]).toEqual(["plain", "plain", "true"]);
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("that failed replays its failure, and sends nothing upstream", async () => {
    const asked = json({ prompt: "{{status/400}}" }, newKey());
    const [first, again] = [await run.send("/query", asked), await run.send("/query", asked)];
    expect([first.status, errorOf(first).code]).toEqual([502, "upstream_error"]);
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("replays the parallel group of its call", async () => {
    const own = await world.openRun({ default_model: "up-1", window_ms: 2_000 });
    const send = (prompt: string) => own.send("/query", json({ prompt: `{{delay/200}} ${prompt}` }, newKey()));
    const replies = (await Promise.all([send("a"), send("b")])).map(replyOf);
    expect(replies[0]?.parallel_group_id).toMatch(/^pg-/);
    expect(replies[1]?.parallel_group_id).toBe(replies[0]?.parallel_group_id);
  });
});

describe("the idempotency key of a /batch", () => {
  const prompts = ["a", "{{status/400}}", "{{delay/100}} c"];

  it.each(["application/json", "application/x-ndjson", "text/event-stream"])(
    "that has ended replays its group as %s, byte for byte, at no cost",
    async (accept) => {
      const asked = json({ prompts, error_style: "settled" }, newKey(), { accept });
      const first = await run.send("/batch", asked);
      const { budget } = await documentOf(run);
      const again = await run.send("/batch", asked);
      expect([again.status, again.text.trim()]).toEqual([200, first.text.trim()]);
      expect([replayed(first), replayed(again)]).toEqual([null, "true"]);
      expect(world.upstream.counters.requests).toBe(3);
      expect((await documentOf(run)).budget).toEqual(budget);
    },
  );

  it("that still runs attaches later requests, and all get the same reply", async () => {
    const slow = Array.from({ length: 30 }, (_, index) => `{{delay/60}} ${index}`);
    const asked = json({ prompts: slow, concurrency: 4 }, newKey());
    const first = run.send("/batch", asked);
    await expect.poll(() => world.upstream.counters.requests).toBeGreaterThan(8);
    const later = Promise.all(Array.from({ length: 8 }, () => run.send("/batch", asked)));
    const groups = [await first, ...(await later)].map(groupOf);
    for (const group of groups) expect([group.id, group.results]).toEqual([groups[0]?.id, slow]);
    expect(world.upstream.counters.requests).toBe(30);
    expect([...world.upstream.counters.sends.values()].every((sends) => sends === 1)).toBe(true);
  });

  it("can be replayed in another reply format", async () => {
    const key = newKey();
    const first = groupOf(await run.send("/batch", json({ prompts }, key)));
    const lines = await run.send("/batch", json({ prompts }, key, { accept: "application/x-ndjson" }));
    expect(lines.text).toContain(`"parallel_group_id":"${first.id}"`);
    expect(lines.text.trimEnd().split("\n")).toHaveLength(5);
    const left = await run.send("/batch", json({ prompts }, key, ASYNC));
    expect([left.status, left.headers.get("location"), replayed(left)]).toEqual([202, `/groups/${first.id}`, "true"]);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it("finds the group that was opened asynchronously", async () => {
    const asked = json({ prompts: ["{{delay/200}} left"] }, newKey(), ASYNC);
    const [first, again] = [await run.send("/batch", asked), await run.send("/batch", asked)];
    expect([first.status, again.status]).toEqual([202, 202]);
    const at = first.headers.get("location") ?? "";
    expect(again.headers.get("location")).toBe(at);
    expect(groupOf(await endOf(run, at)).results).toEqual(["{{delay/200}} left"]);
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("replays the error of error_style throw", async () => {
    const asked = json({ prompts, error_style: "throw" }, newKey());
    const [first, again] = [await run.send("/batch", asked), await run.send("/batch", asked)];
    expect([first.status, again.status, again.text]).toEqual([502, 502, first.text]);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it("of 2,000 slots replays all of them", { tags: ["slow"] }, async () => {
    const many = Array.from({ length: 2_000 }, (_, index) => `${index} ${"x".repeat(1_000)}`);
    const asked = json({ prompts: many, model: "sim/echo", concurrency: 8 }, newKey());
    const own = await world.openRun();
    const first = groupOf(await own.send("/batch", asked));
    const { budget } = await documentOf(own);
    const again = await own.send("/batch", asked);
    expect(groupOf(again).results).toEqual(many);
    expect([groupOf(again).id, replayed(again)]).toEqual([first.id, "true"]);
    expect((await documentOf(own)).budget).toEqual(budget);
  });

  it("is not taken by a quote", async () => {
    const key = newKey();
    await run.send("/batch?quote=1", json({ prompts }, key));
    expect(replayed(await run.send("/batch", json({ prompts }, key)))).toBeNull();
  });
});

describe("an idempotency key", () => {
  it("of another request is refused while the first runs and afterwards, and changes nothing", async () => {
    const key = newKey();
    const first = run.send("/query", json({ prompt: "{{delay/300}} first" }, key));
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const others: [string, unknown][] = [
      ["/query", { prompt: "{{delay/300}} other" }],
      ["/query", { prompt: "{{delay/300}} first", max_tokens: 5 }],
      ["/batch", { prompts: ["{{delay/300}} first"] }],
    ];
    const refuse = async () => {
      for (const [path, body] of others) {
        const answer = await run.send(path, json(body, key));
        expect([answer.status, errorOf(answer).code]).toEqual([409, "idempotency_conflict"]);
        expect(answer.headers.get("x-should-retry")).toBe("false");
      }
    };
    await refuse();
    replyOf(await first);
    await refuse();
    expect(replayed(await run.send("/query", json({ prompt: "{{delay/300}} first" }, key)))).toBe("true");
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("is not taken by a refused request", async () => {
    const key = newKey();
    expect((await run.send("/query", json({ prompt: 1 }, key))).status).toBe(400);
    expect((await run.send("/query", json({ prompt: "p", model: "absent-1" }, key))).status).toBe(404);
    const answer = await run.send("/query", json({ prompt: "p" }, key));
    expect([answer.status, replayed(answer)]).toEqual([200, null]);
  });

  it("is scoped to its run, also in a child run", async () => {
    const key = newKey();
    const asked = json({ prompt: "the same" }, key);
    const child = await world.gateway.fetch("/runs", { json: {}, token: run.token });
    const { token } = JSON.parse(await child.text());
    const other = await world.openRun({ default_model: "up-1" });
    const answers = [
      await run.send("/query", asked),
      await other.send("/query", asked),
      await world.send("/query", { ...asked, token: String(token) }),
    ];
    expect(answers.map(replayed)).toEqual([null, null, null]);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it("may have up to 255 visible characters", async () => {
    for (const key of ["k", "!~", `${newKey()}${"k".repeat(240)}`.padEnd(255, "k")]) {
      expect((await run.send("/query", json({ prompt: `by ${key.length}` }, key))).status).toBe(200);
    }
  });

  it.each([
    ["is empty", ""],
    ["has 256 characters", "k".repeat(256)],
    ["holds a space", "a b"],
    ["holds more than ASCII", "schlüssel"],
  ])("that %s is refused with the header's name", async (_, key) => {
    for (const [path, body] of [
      ["/query", { prompt: "p" }],
      ["/batch", { prompts: ["p"] }],
    ] as const) {
      const answer = await run.send(path, json(body, key));
      expect([answer.status, errorOf(answer).param]).toEqual([400, "idempotency-key"]);
    }
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("the idempotency key of a child run", () => {
  const opened = z.looseObject({ id: z.string(), token: z.string(), status: z.string(), budget: z.unknown() });
  const openAgain = async (parent: RunAccess, request: ReturnType<typeof json>) => {
    const answer = await parent.send("/runs", request);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return { ...opened.parse(answer.json), replayed: replayed(answer) };
  };
  const reservedCalls = async (parent: RunAccess) => (await documentOf(parent)).budget.calls.reserved;

  it("returns the same child, with a valid token, and reserves its budget once", async () => {
    const parent = await world.openRun({ default_model: "up-1", budget: { calls: 10 } });
    const asked = json({ budget: { calls: 4 }, name: "sub" }, newKey());
    const first = await openAgain(parent, asked);
    const again = await openAgain(parent, asked);
    expect([first.replayed, again.replayed, again.id]).toEqual([null, "true", first.id]);
    expect(await reservedCalls(parent)).toBe(4);
    const { token } = again;
    expect(replyOf(await world.send("/query", { token, json: { prompt: "p" } })).text).toBe("p");
    expect((await openAgain(parent, asked)).budget).toMatchObject({ calls: { spent: 1, remaining: 3 } });
  });

  it("opens one child for twenty concurrent requests", async () => {
    const parent = await world.openRun({ budget: { calls: 100 } });
    const asked = json({ budget: { calls: 5 } }, newKey());
    const all = await Promise.all(Array.from({ length: 20 }, () => openAgain(parent, asked)));
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(all.filter((one) => one.replayed === null)).toHaveLength(1);
    expect(await reservedCalls(parent)).toBe(5);
  });

  it("returns a child that has ended, and opens no other", async () => {
    const parent = await world.openRun({ budget: { calls: 10 } });
    const asked = json({ budget: { calls: 4 } }, newKey());
    const { id } = await openAgain(parent, asked);
    await parent.send(`/runs/${id}/close`, { method: "POST" });
    expect(await openAgain(parent, asked)).toMatchObject({ id, status: "closed", replayed: "true" });
    expect(await reservedCalls(parent)).toBe(0);
  });

  it("is refused for another child and for other requests; each run has keys of its own", async () => {
    const parent = await world.openRun({ default_model: "up-1", budget: { calls: 10 } });
    const other = await world.openRun({ budget: { calls: 10 } });
    const [key, spent] = [newKey(), newKey()];
    const { id } = await openAgain(parent, json({ budget: { calls: 1 } }, key));
    const wrong = await parent.send("/runs", json({ budget: { calls: 2 } }, key));
    expect([wrong.status, errorOf(wrong).code]).toEqual([409, "idempotency_conflict"]);
    await parent.send("/query", json({ prompt: "p" }, spent));
    const taken = await parent.send("/runs", json({ budget: { calls: 1 } }, spent));
    expect([taken.status, errorOf(taken).code]).toEqual([409, "idempotency_conflict"]);
    expect((await openAgain(other, json({ budget: { calls: 1 } }, key))).id).not.toBe(id);
  });

  it("is refused for a root run, which is then not opened", async () => {
    const listed = async () => (await world.sendAsOperator("/runs?limit=1")).text;
    const before = await listed();
    const answer = await world.sendAsOperator("/runs", json({}, newKey()));
    expect([answer.status, errorOf(answer).param]).toEqual([400, "idempotency-key"]);
    expect(await listed()).toBe(before);
  });

  it("can be reused after the child was refused", async () => {
    const parent = await world.openRun({ budget: { calls: 3 } });
    const key = newKey();
    expect((await parent.send("/runs", json({ budget: { calls: 4 } }, key))).status).toBe(402);
    expect((await openAgain(parent, json({ budget: { calls: 3 } }, key))).replayed).toBe(null);
  });
});
