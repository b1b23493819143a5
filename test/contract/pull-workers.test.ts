/** Pull workers: programs that take the calls of a run, keep their leases, and deliver what the client gets as any answer. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

const PRICES = { "*": { input: 1, output: 2 } };
const UPSTREAMS = {
  sim: { kind: "simulated" },
  codex: { kind: "pull", models: ["agent", "other"], max_attempts: 2, max_in_flight: 512 },
  paid: { kind: "pull", models: ["agent"], prices: PRICES },
};

let world: World;
beforeAll(async () => void (world = await startWorld(undefined, { UPSTREAMS })));
afterAll(() => world.stop());

const items = z.object({
  items: z.array(
    z.looseObject({ lease_id: z.string(), prompt: z.string().nullable(), model: z.string(), deadline: z.string() }),
  ),
});
type Item = z.infer<typeof items>["items"][number];
const leases = z.object({ leases: z.array(z.looseObject({ lease_id: z.string(), state: z.string() })) });

const open = (body: Record<string, unknown> = {}) => world.openRun({ max_parallel: 8, ...body });
const post = (run: RunAccess, path: string, json: unknown) => run.send(`/runs/${run.id}/${path}`, { json });
async function claim(run: RunAccess, json: Record<string, unknown> = {}): Promise<Item[]> {
  const answer = await post(run, "claim", { wait_ms: 20_000, ...json });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return items.parse(answer.json).items;
}
async function claimOne(run: RunAccess, json: Record<string, unknown> = {}): Promise<Item> {
  const [item] = await claim(run, json);
  if (item === undefined) throw new Error("there was no item");
  return item;
}
const complete = (run: RunAccess, { lease_id }: Item, json: Record<string, unknown>) =>
  post(run, "complete", { lease_id, ...json });
const stateOf = async (run: RunAccess, { lease_id }: Item) =>
  leases.parse((await post(run, "heartbeat", { lease_ids: [lease_id] })).json).leases[0]?.state;
const batch = (run: RunAccess, json: Record<string, unknown>) =>
  run.send("/batch", { json: { model: "codex/agent", ...json } });

describe("a pull worker", () => {
  it("serves the slots of a batch, whose results are in input order whatever the order of completion", async () => {
    const run = await open();
    const answered = batch(run, { prompts: ["a", "b", "c"] });
    const taken: Item[] = [];
    while (taken.length < 3) taken.push(...(await claim(run, { max: 3 })));
    expect(taken.map(({ prompt }) => prompt).toSorted()).toEqual(["a", "b", "c"]);
    for (const item of taken.toReversed()) {
      const done = await complete(run, item, { text: `done ${item.prompt}` });
      expect([done.status, done.json]).toEqual([
        200,
        { lease_id: item.lease_id, status: "completed", repeated: false },
      ]);
    }
    expect(groupOf(await answered).results).toEqual(["done a", "done b", "done c"]);
  });

  it("completes with a whole message, which its client gets beside the text", async () => {
    const run = await open();
    const call = { id: "c", type: "function", function: { name: "f", arguments: '{"n": 12345678901234567890}' } };
    const message = { role: "assistant", content: null, tool_calls: [call], reasoning_content: "think" };
    const answered = batch(run, { prompts: ["a"] });
    const item = await claimOne(run);
    expect((await complete(run, item, { message })).status).toBe(200);
    expect((await complete(run, item, { message })).json).toMatchObject({ repeated: true });
    expect((await answered).json).toMatchObject({
      results: [""],
      items: [{ status: "completed", finish_reason: "tool_calls", message }],
    });
    const text = run.send("/query", { json: { prompt: "p", model: "codex/agent" } });
    await complete(run, await claimOne(run), { message: { content: "plain" }, finish_reason: "length" });
    expect((await text).json).toMatchObject({ text: "plain", finish_reason: "length" });
    expect((await text).json).not.toHaveProperty("message");
  });

  it("serves /query, with JSON as its text, and its usage is charged by the configured price", async () => {
    const run = await open({ budget: { usd: 1, calls: 3 } });
    const answered = run.send("/query", { json: { prompt: "p", model: "paid/agent", max_tokens: 50 } });
    const item = await claimOne(run);
    expect(item).toMatchObject({ model: "agent", upstream: "paid", request: { messages: [{ content: "p" }] } });
    await complete(run, item, { json: { ok: true }, usage: { prompt_tokens: 1, completion_tokens: 10 } });
    expect((await answered).json).toMatchObject({ text: '{"ok":true}', usage: { cost: 21e-6 } });
    expect((await documentOf(run)).budget).toMatchObject({ usd: { spent: 21e-6 }, calls: { spent: 1 } });
  });

  it("gets only items of the models that it names, and at most as many as it asks for", async () => {
    const run = await open();
    const answered = batch(run, { items: [{ prompt: "a" }, { prompt: "b", model: "codex/other" }, { prompt: "c" }] });
    const other = await claimOne(run, { models: ["codex/other"], max: 5 });
    expect(other.prompt).toBe("b");
    const first = await claimOne(run, { max: 1, models: ["codex"] });
    const second = await claimOne(run, { max: 1, models: ["codex"] });
    expect(await claim(run, { wait_ms: 0 })).toEqual([]);
    for (const item of [other, first, second]) await complete(run, item, { text: item.prompt });
    expect(groupOf(await answered).results).toEqual(["a", "b", "c"]);
  });

  it("fails an item with an error that is not retried, without touching its neighbours", async () => {
    const run = await open();
    const answered = batch(run, { prompts: ["a", "b"] });
    for (const item of [await claimOne(run), await claimOne(run)]) {
      const refused = { error: { message: "no such file", retryable: false } };
      await complete(run, item, item.prompt === "a" ? refused : { text: "fine" });
    }
    const { results, errors } = groupOf(await answered);
    expect([results[0], results[1]]).toEqual([expect.stringContaining("no such file"), "fine"]);
    expect([errors[0]?.retryable, errors[1]]).toEqual([false, null]);
  });

  it("gives back an item with an error that may pass: another attempt is another item", async () => {
    const run = await open();
    const answered = batch(run, { prompts: ["a"] });
    const first = await claimOne(run);
    await complete(run, first, { error: { message: "crashed" } });
    const second = await claimOne(run);
    expect(second.lease_id).not.toBe(first.lease_id);
    await complete(run, second, { text: "at last" });
    expect(groupOf(await answered).results).toEqual(["at last"]);
  });

  it("may repeat a delivery; one that differs is refused", async () => {
    const run = await open();
    const answered = batch(run, { prompts: ["a"] });
    const item = await claimOne(run);
    expect((await complete(run, item, { text: "x" })).json).toMatchObject({ repeated: false });
    expect((await complete(run, item, { text: "x" })).json).toMatchObject({ repeated: true });
    const other = await complete(run, item, { text: "y" });
    expect([other.status, errorOf(other)]).toEqual([
      409,
      expect.objectContaining({ code: "lease_lost", lease_end: "completed" }),
    ]);
    expect(groupOf(await answered).results).toEqual(["x"]);
    expect(await stateOf(run, item)).toBe("completed");
  });

  it(
    "keeps its item by heartbeats; without them another worker gets it, and its late answer is refused",
    { tags: ["slow"] },
    async () => {
      const run = await open();
      const answered = batch(run, { prompts: ["a"] });
      const slow = await claimOne(run, { lease_ms: 2_000 });
      expect(await stateOf(run, slow)).toBe("active");
      expect(await claim(run, { wait_ms: 0 })).toEqual([]);
      await post(run, "heartbeat", { lease_ids: [slow.lease_id], lease_ms: 2_000 });
      const next = await claimOne(run);
      expect(next.prompt).toBe("a");
      expect(await stateOf(run, slow)).toBe("expired");
      expect(errorOf(await complete(run, slow, { text: "late" }))).toMatchObject({ lease_end: "expired" });
      await complete(run, next, { text: "in time" });
      expect(groupOf(await answered).results).toEqual(["in time"]);
      expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 1 });
    },
  );

  it("learns that its item was cancelled", async () => {
    const run = await open();
    const started = await run.send("/batch", {
      json: { prompts: ["a"], model: "codex/agent" },
      headers: { prefer: "respond-async" },
    });
    const item = await claimOne(run);
    await run.send(started.headers.get("location") ?? "", { method: "DELETE" });
    await expect.poll(() => stateOf(run, item)).toBe("cancelled");
    expect(errorOf(await complete(run, item, { text: "x" }))).toMatchObject({ lease_end: "cancelled" });
    expect(await claim(run, { wait_ms: 0 })).toEqual([]);
  });

  it("needs the token of the run, of a run above it, or the operator's key", async () => {
    const [run, stranger] = [await open(), await open()];
    const body = { json: {} };
    expect((await stranger.send(`/runs/${run.id}/claim`, body)).status).toBe(404);
    expect((await world.sendAsOperator(`/runs/${run.id}/claim`, body)).status).toBe(200);
    expect((await world.send(`/runs/${run.id}/claim`, body)).status).toBe(401);
  });

  it.each([
    ["claim", { max: 0 }, "max"],
    ["claim", { max: 65 }, "max"],
    ["claim", { lease_ms: 1_999 }, "lease_ms"],
    ["claim", { lease_ms: 600_001 }, "lease_ms"],
    ["heartbeat", { lease_ids: [] }, "lease_ids"],
    ["complete", { lease_id: "x" }, "text"],
    ["complete", { lease_id: "x", text: "a", json: 1 }, "text"],
  ])("is refused %s with %j", async (path, json, param) => {
    const run = await open();
    expect(errorOf(await post(run, path, json))).toMatchObject({ code: "invalid_request", param });
  });

  it("is not served over /v1", async () => {
    const run = await open();
    const json = { model: "codex/agent", messages: [{ role: "user", content: "a" }] };
    const refused = await run.send("/v1/chat/completions", { json });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("pull workers")]);
  });

  it("500 items that complete at once are each used once, and none is lost", { tags: ["slow"] }, async () => {
    const run = await open({ max_parallel: 512 });
    const prompts = Array.from({ length: 500 }, (_, index) => `p${index}`);
    const answered = batch(run, { prompts });
    const taken: Item[] = [];
    while (taken.length < 500) taken.push(...(await claim(run, { max: 64 })));
    expect(new Set(taken.map(({ prompt }) => prompt)).size).toBe(500);
    const done = await Promise.all(taken.map((item) => complete(run, item, { text: `r ${item.prompt}` })));
    expect(new Set(done.map(({ status }) => status))).toEqual(new Set([200]));
    expect(groupOf(await answered).results).toEqual(prompts.map((prompt) => `r ${prompt}`));
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 500, reserved: 0 });
  });
});
