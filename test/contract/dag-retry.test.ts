/** A graph that has ended runs once more: what completed is kept. In this world a token costs $1 (in) or $2 (out) per million. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const graphReply = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(z.string(), z.looseObject({ status: z.string(), attempts: z.int() })),
  usage: z.looseObject({ cost: z.number() }),
});
const runGraph = async (tasks: object[]) => graphReply.parse((await run.send("/dag", { json: { tasks } })).json);
const retry = (id: string, headers: Record<string, string> = {}) =>
  run.send(`/dag/${id}/retry`, { method: "POST", headers });
const statuses = ({ tasks }: z.infer<typeof graphReply>) =>
  Object.entries(tasks).map(([id, { status, attempts }]) => `${id} ${status} ${attempts}`);

describe("POST /dag/:id/retry", () => {
  it("makes only the calls that did not complete, with the recorded outputs in their prompts", async () => {
    const first = await runGraph([
      { id: "find", prompt: "found it" },
      { id: "check", prompt: "check {{find.output}}", model: "up-1", max_retries: 0 },
      { id: "bad", prompt: "{{find.output.json.x}}" },
      { id: "report", prompt: "report {{bad.output}}" },
    ]);
    expect(statuses(first)).toEqual(["find completed 1", "check completed 1", "bad failed 0", "report skipped 0"]);
    const spent = (await documentOf(run)).budget.usd.spent;
    world.upstream.forget();
    const again = graphReply.parse((await retry(first.id)).json);
    expect(again.id).not.toBe(first.id);
    expect(statuses(again)).toEqual(["find completed 0", "check completed 0", "bad failed 0", "report skipped 0"]);
    expect(again.usage.cost).toBe(0);
    expect(world.upstream.counters.requests).toBe(0);
    expect((await documentOf(run)).budget.usd.spent).toBe(spent);
    expect((await run.send(`/dag/${first.id}`)).json).toMatchObject({ id: first.id, status: "partial" });
  });

  it("completes a graph whose failure has passed, element by element", async () => {
    // The provider refuses the first request of the first element, and answers the next one.
    const prompt = '["{{status/400/first/1}} a","b","c"]';
    const first = await runGraph([
      { id: "list", prompt, model: "sim/echo" },
      { id: "each", foreach: "{{list.output.json}}", prompt: "do {{item}}" },
      { id: "end", prompt: "the end", dependencies: ["each"] },
    ]);
    expect(first.tasks["each"]?.status).toBe("partial");
    expect(first.tasks["end"]?.status).toBe("skipped");
    const { requests } = world.upstream.counters;
    const again = graphReply.parse((await retry(first.id)).json);
    expect(again.status).toBe("completed");
    // One element and the end: the list and two elements were kept.
    expect(world.upstream.counters.requests - requests).toBe(2);
  });

  it("opens one graph for one Idempotency-Key", async () => {
    const { id } = await runGraph([{ id: "a", prompt: "one" }]);
    const one = graphReply.parse((await retry(id, { "idempotency-key": "again" })).json);
    const other = await retry(id, { "idempotency-key": "again" });
    expect(graphReply.parse(other.json).id).toBe(one.id);
    expect(other.headers.get("idempotent-replayed")).toBe("true");
  });

  it("refuses a graph that runs, a batch, and an id that is none", async () => {
    const running = run.send("/dag", {
      json: { tasks: [{ id: "a", prompt: "{{latch/held}}" }] },
      headers: { prefer: "respond-async" },
    });
    const { id } = z.looseObject({ id: z.string() }).parse((await running).json);
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    expect(errorOf(await retry(id)).message).toContain("is running");
    world.upstream.open("held");
    const batch = z
      .looseObject({ id: z.string() })
      .parse((await run.send("/batch", { json: { prompts: ["p"] } })).json);
    for (const none of [batch.id, "pg-0-x"]) expect((await retry(none)).status).toBe(404);
  });
});
