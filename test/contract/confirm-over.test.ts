/** `confirm_over`: a group whose quote is above it is held until it is confirmed, also through a SIGKILL. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runningGroup } from "../../src/contract/groups.ts";
import { openedRunDocument } from "../../src/contract/runs.ts";
import { ASYNC, endOf, logOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { documentOf, groupOf, type Answer, type RunAccess } from "./world.ts";

const RULES = { default_model: "up-1", max_parallel: 4 };
const PROMPTS = ["one", "two", "three"];

let place: Restarting;
beforeAll(async () => (place = await startRestarting()));
afterAll(() => place.stop());

/** The group in the answer to a request that was held. */
function heldIn(answer: Answer) {
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
  const group = runningGroup().parse(answer.json);
  expect(group).toMatchObject({ status: "awaiting_confirmation" });
  expect(answer.headers.get("location")).toBe(`/groups/${group.id}`);
  return { ...group, at: `/groups/${group.id}` };
}

const confirm = (run: RunAccess, at: string): Promise<Answer> => run.send(`${at}/confirm`, { method: "POST" });

describe("a batch above confirm_over", () => {
  it(
    "answers with its quote, sends nothing, survives a SIGKILL, and runs once it is confirmed",
    { tags: ["slow"] },
    async () => {
      const run = await place.openRun({ ...RULES, confirm_over: { calls: 2 } });
      const before = place.upstream.counters.requests;
      const group = heldIn(await run.send("/batch", { json: { prompts: PROMPTS, max_tokens: 100 } }));
      expect(group).toMatchObject({
        quote: { calls: 3 },
        error: { code: "awaiting_confirmation", message: expect.stringContaining(`POST ${group.at}/confirm`) },
        counts: { queued: 3 },
        waiting_for: [{ confirmation: true, slots: 3 }],
      });
      expect(group.quote?.worst_usd).toBeGreaterThan(group.quote?.likely_usd ?? Infinity);
      await place.restart();
      expect((await run.send(group.at)).json).toMatchObject({ status: "awaiting_confirmation", quote: group.quote });
      expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 0, reserved: 0 });
      expect(place.upstream.counters.requests).toBe(before);
      expect((await confirm(run, group.at)).json).toMatchObject({ status: "running" });
      expect(groupOf(await endOf(run, group.at))).toMatchObject({ status: "completed", results: PROMPTS });
      expect((await confirm(run, group.at)).json).toMatchObject({ status: "completed" });
      expect(place.upstream.counters.requests - before).toBe(3);
      const types = (await logOf(run)).map(({ event_type }) => event_type);
      expect(types.filter((type) => type.includes("confirm"))).toEqual(["confirmation_awaited", "group_confirmed"]);
    },
  );

  it("stays confirmed through a SIGKILL", { tags: ["slow"] }, async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 0 } });
    const { at } = heldIn(await run.send("/batch", { json: { prompts: ["{{latch/confirmed}} one", "two"] } }));
    await confirm(run, at);
    await place.restart();
    place.upstream.open("confirmed");
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed" });
  });

  it("is compared in dollars with the worst case, on both sides of the bound", async () => {
    const json = { prompts: PROMPTS, max_tokens: 100 };
    const first = await place.openRun({ ...RULES, confirm_over: { usd: 0 } });
    const worst = heldIn(await first.send("/batch", { json })).quote?.worst_usd ?? 0;
    const below = await place.openRun({ ...RULES, confirm_over: { usd: worst - 1e-6 } });
    heldIn(await below.send("/batch", { json }));
    const exact = await place.openRun({ ...RULES, confirm_over: { usd: worst } });
    expect(groupOf(await exact.send("/batch", { json })).status).toBe("completed");
  });

  it("is declined by its cancellation", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 1 } });
    const { at } = heldIn(await run.send("/batch", { json: { prompts: PROMPTS }, headers: ASYNC }));
    expect((await run.send(at, { method: "DELETE" })).json).toMatchObject({ status: "cancelled" });
    expect((await confirm(run, at)).json).toMatchObject({ status: "cancelled", counts: { cancelled: 3 } });
  });

  it("is found by its key, held or confirmed, and as a stream too it answers with the quote", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 1 } });
    const headers = { "idempotency-key": "wide", accept: "application/x-ndjson" };
    const request = { json: { prompts: PROMPTS }, headers };
    const { id, at } = heldIn(await run.send("/batch", request));
    expect(heldIn(await run.send("/batch", request)).id).toBe(id);
    await confirm(run, at);
    const lines = (await run.send("/batch", request)).text.trimEnd().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ type: "group_completed", id, status: "completed" });
  });

  it("ends at its deadline, although detach is false and nobody follows it", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 0 } });
    const { at } = heldIn(await run.send("/batch", { json: { prompts: ["one"], deadline_ms: 500, detach: false } }));
    expect(groupOf(await endOf(run, at))).toMatchObject({ status: "failed", errors: [{ code: "deadline_exceeded" }] });
  });
});

describe("confirm_over", () => {
  it("holds a graph by all elements that it may have, and lets a small one through", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 5 } });
    const graph = (max_items: number) => ({
      tasks: [
        { id: "list", prompt: '["a","b"]' },
        { id: "each", prompt: "{{item}}", foreach: "{{list.output}}", max_items },
      ],
    });
    const { at, quote } = heldIn(await run.send("/dag", { json: graph(5) }));
    expect(quote?.calls).toBe(6);
    await confirm(run, at);
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed", outputs: { each: ["a", "b"] } });
    expect((await run.send("/dag", { json: graph(4) })).status).toBe(200);
  });

  it("holds no single call, and no call that combines the answers of a confirmed batch", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 0 } });
    expect((await run.send("/query", { json: { prompt: "one" } })).status).toBe(200);
    const named = { json: { prompt: "one" }, headers: { "idempotency-key": "one" } };
    expect((await run.send("/query", named)).status).toBe(200);
    const aggregate = { strategy: "judge", rubric: "is it good?" };
    const { at } = heldIn(await run.send("/batch", { json: { prompts: ["one", "two"], aggregate } }));
    await confirm(run, at);
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed", aggregation: expect.any(Object) });
  });

  it("of a child run is at most that of its parent", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 2 } });
    for (const own of [{}, { confirm_over: { calls: 100 } }, { confirm_over: { usd: 100 } }]) {
      const child = openedRunDocument().parse((await run.send("/runs", { json: own })).json);
      heldIn(await run.send("/batch", { token: child.token, json: { prompts: PROMPTS } }));
      expect((await run.send("/batch", { token: child.token, json: { prompts: ["one", "two"] } })).status).toBe(200);
    }
  });

  it("makes a client that knows nothing but results wait for the confirmation", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 0 } });
    const answer = run.send("/llm_query_batched", { json: { prompts: ["one"] } });
    const held = await vi.waitFor(async () => {
      const found = (await logOf(run)).find(({ event_type }) => event_type === "confirmation_awaited");
      expect(found).toBeDefined();
      return found;
    });
    await confirm(run, `/groups/${held?.parallel_group_id}`);
    expect((await answer).json).toMatchObject({ responses: ["one"] });
  });

  it("is no group of another run", async () => {
    const run = await place.openRun({ ...RULES, confirm_over: { calls: 0 } });
    const other = await place.openRun(RULES);
    const { at } = heldIn(await run.send("/batch", { json: { prompts: ["one"] } }));
    expect((await confirm(other, at)).status).toBe(404);
    expect((await run.send(at)).json).toMatchObject({ status: "awaiting_confirmation" });
  });

  it.each([{}, { calls: -1 }, { usd: "1" }, { tokens: 1 }])("is refused as %j", async (confirm_over) => {
    const gateway = place.gateway();
    const opened = await gateway.fetch("/runs", { token: gateway.adminKey, json: { confirm_over } });
    expect(opened.status).toBe(400);
    await opened.arrayBuffer();
  });
});

it("a batch within confirm_over starts at once", async () => {
  const run = await place.openRun({ ...RULES, confirm_over: { calls: 3 } });
  const { at } = await openGroup(run, { prompts: PROMPTS });
  expect((await endOf(run, at)).json).toMatchObject({ status: "completed" });
});
