/** Plans that run while they are written: `POST /dag` with lines. The provider repeats prompts; those with a latch wait until it opens. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { PlanClient, type PlanEvent, type PlanType } from "../support/plan-client.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const graph = z.looseObject({
  status: z.string(),
  version: z.int(),
  plan: z.object({ state: z.string(), errors: z.array(z.object({ line: z.int(), message: z.string() })) }),
  tasks: z.record(z.string(), z.looseObject({ status: z.string(), output: z.string().nullable().optional() })),
});

const open = (): Promise<RunAccess> => world.openRun({ budget: { usd: 1 }, default_model: "up-1" });

function plan(run: RunAccess, type: PlanType = "application/x-ndjson", accept?: string): PlanClient {
  return new PlanClient(world.gateway.url, run.token, { type, ...(accept === undefined ? {} : { accept }) });
}

const line = (task: object): string => `${JSON.stringify(task)}\n`;
const requests = (): number => world.upstream.counters.requests;

async function graphAt(run: RunAccess, id: unknown): Promise<z.infer<typeof graph>> {
  return graph.parse((await run.send(`/dag/${String(id)}?wait_ms=20000`)).json);
}

describe("a plan that is sent line by line", () => {
  it("starts each task when its line is complete, and ends after the last line and the last task", async () => {
    const run = await open();
    const client = plan(run);
    client.write(line({ id: "a", prompt: "alpha" }));
    expect(await client.next()).toMatchObject({ type: "graph_started", version: 1, tasks: 1 });
    expect(await client.next()).toMatchObject({ type: "task", task: "a", output: "alpha" });
    // Everything so far has ended, and the graph has not: more may come.
    client.write(line({ id: "b", prompt: "{{a.output}} beta" }).slice(0, 20));
    expect(requests()).toBe(1);
    client.write(line({ id: "b", prompt: "{{a.output}} beta" }).slice(20));
    expect(await client.next()).toMatchObject({ type: "task", task: "b", output: "alpha beta" });
    client.end(JSON.stringify({ id: "c", prompt: "{{b.output}} gamma" }));
    expect(await client.next()).toMatchObject({ type: "task", task: "c", output: "alpha beta gamma" });
    expect(await client.rest()).toMatchObject([
      { type: "graph_completed", status: "completed", plan: { state: "ended", errors: [] }, count: 3 },
    ]);
    const { budget } = await documentOf(run);
    expect([budget.calls.spent, budget.usd.reserved]).toEqual([3, 0]);
  });

  it("can be one of LLMCompiler, whose join ends it even if the client sends more", async () => {
    const run = await open();
    const client = plan(run, "text/x-llmcompiler");
    client.write('Thought: two heights\n1. search("height of A")\n');
    expect(await client.next()).toMatchObject({ type: "graph_started" });
    expect(await client.next()).toMatchObject({ task: "1", output: 'search("height of A")' });
    client.write('2. search("height of B")\n3. math("$1 - $2")\n4. join()\n');
    const rest = await client.rest();
    expect(rest.map(({ type, task }) => [type, task])).toEqual([
      ["task", "2"],
      ["task", "3"],
      ["graph_completed", undefined],
    ]);
    expect(rest[1]).toMatchObject({ output: 'math("search("height of A") - search("height of B")")' });
    client.end();
  });

  it("answers with one JSON object when it has ended, if the client accepts JSON", async () => {
    const run = await open();
    const client = plan(run, "application/x-ndjson", "application/json");
    client.write(line({ id: "a", prompt: "alpha" }));
    await expect.poll(requests).toBe(1);
    client.end(line({ id: "b", prompt: "{{a.output}} beta" }));
    expect(await client.rest()).toMatchObject([
      { object: "graph", status: "completed", plan: { state: "ended", errors: [] }, outputs: { b: "alpha beta" } },
    ]);
  });

  it("shows each bad line as an event with its number; the others run, and the graph is partial", async () => {
    const run = await open();
    const client = plan(run);
    client.write("no json\n");
    client.write(line({ id: "a", prompt: "alpha" }));
    expect(await client.next()).toMatchObject({ type: "graph_started" });
    const seen = [await client.next(), await client.next()] as PlanEvent[];
    expect(seen.find(({ type }) => type === "plan_error")).toMatchObject({
      line: 1,
      message: expect.stringContaining("JSON"),
    });
    expect(seen.find(({ type }) => type === "task")).toMatchObject({ task: "a" });
    client.write(line({ id: "b", prompt: "{{later.output}}" }));
    expect(await client.next()).toMatchObject({
      type: "plan_error",
      line: 3,
      message: expect.stringContaining('no task has the id "later"'),
    });
    client.write(line({ id: "a", prompt: "again" }));
    expect(await client.next()).toMatchObject({ type: "plan_error", line: 4 });
    client.write(line({ id: "m", prompt: "x", model: "no-such-model" }));
    expect(await client.next()).toMatchObject({ type: "plan_error", line: 5 });
    client.write(line({ id: "p", promt: "x" }));
    expect(await client.next()).toMatchObject({
      type: "plan_error",
      line: 6,
      message: expect.stringContaining("prompt"),
    });
    client.end(line({ id: "c", prompt: "{{a.output}} gamma" }));
    const rest = await client.rest();
    expect(rest[0]).toMatchObject({ type: "task", task: "c", output: "alpha gamma" });
    expect(rest[1]).toMatchObject({ type: "graph_completed", status: "partial" });
    const errors = z.object({ plan: z.object({ errors: z.array(z.object({ line: z.int() })) }) }).parse(rest[1]);
    expect(errors.plan.errors.map((each) => each.line)).toEqual([1, 3, 4, 5, 6]);
    expect(requests()).toBe(2);
  });

  it("is refused with 400 if no line is a task", async () => {
    const run = await open();
    const client = plan(run);
    client.write("no json\n");
    client.end("neither");
    expect(await client.status()).toBe(400);
    expect(await client.next()).toMatchObject({ error: { message: expect.stringMatching(/line 1 .*line 2 /) } });
    const none = plan(run, "text/x-llmcompiler");
    none.end("join()\n");
    expect(await none.status()).toBe(400);
  });

  it("stops reading after many bad lines, with what has come", async () => {
    const run = await open();
    const client = plan(run);
    client.write(line({ id: "a", prompt: "alpha" }) + "bad\n".repeat(100) + line({ id: "b", prompt: "beta" }));
    const rest = await client.rest();
    expect(rest.filter(({ type }) => type === "plan_error")).toHaveLength(20);
    expect(rest.at(-1)).toMatchObject({ type: "graph_completed", status: "partial", count: 1 });
  });

  it("continues with the tasks that have come when its client leaves in the middle: the plan is cut, and the graph partial", async () => {
    const run = await open();
    const client = plan(run);
    client.write(line({ id: "a", prompt: "alpha" }));
    const started = await client.next();
    client.write(line({ id: "b", prompt: "{{latch/left}} {{a.output}}" }));
    await expect.poll(requests).toBe(2);
    client.leave();
    await expect.poll(async () => (await look(run, started?.["id"])).plan.state, { timeout: 20_000 }).toBe("cut");
    world.upstream.open("left");
    const ended = await graphAt(run, started?.["id"]);
    expect([ended.status, ended.tasks["b"]?.status]).toEqual(["partial", "completed"]);
    const { budget } = await documentOf(run);
    expect(budget.usd.reserved).toBe(0);
  });

  it("can be cancelled while it is written: nothing more is read", async () => {
    const run = await open();
    const client = plan(run);
    client.write(line({ id: "a", prompt: "alpha" }));
    const started = await client.next();
    expect(await client.next()).toMatchObject({ task: "a" });
    const stopped = await run.send(`/dag/${String(started?.["id"])}`, { method: "DELETE" });
    expect(stopped.status).toBe(200);
    expect((await client.rest()).at(-1)).toMatchObject({ type: "graph_completed", plan: { state: "open" } });
    client.leave();
    expect(requests()).toBe(1);
  });

  it("can be changed while it is written, and gets later lines as before", async () => {
    const run = await open();
    const client = plan(run);
    client.write(line({ id: "a", prompt: "{{latch/changed}} alpha" }));
    const started = await client.next();
    const json = { version: 1, operations: [{ op: "add_task", task: { id: "x", prompt: "extra {{a.output}}" } }] };
    expect((await run.send(`/dag/${String(started?.["id"])}`, { method: "PATCH", json })).status).toBe(200);
    client.write(line({ id: "b", prompt: "{{x.output}} beta" }));
    client.end();
    world.upstream.open("changed");
    const rest = await client.rest();
    expect(rest.map(({ task }) => task)).toEqual(["a", "x", "b", undefined]);
    expect(rest.at(-1)).toMatchObject({ status: "completed" });
  });

  it("is read whole with an Idempotency-Key or respond-async: then lines may refer to later ones", async () => {
    const run = await open();
    const text = line({ id: "b", prompt: "{{a.output}} beta" }) + line({ id: "a", prompt: "alpha" });
    const headers = { "content-type": "application/x-ndjson", "idempotency-key": "whole" };
    const answer = await run.send("/dag", { method: "POST", headers, body: text });
    expect(answer.json).toMatchObject({ status: "completed", outputs: { b: "alpha beta" } });
    const bad = await run.send("/dag", {
      method: "POST",
      headers: { ...headers, "idempotency-key": "bad" },
      body: "x",
    });
    expect([bad.status, errorOf(bad).message]).toEqual([400, expect.stringContaining("line 1")]);
  });
});

async function look(run: RunAccess, id: unknown): Promise<z.infer<typeof graph>> {
  return graph.parse((await run.send(`/dag/${String(id)}`)).json);
}
