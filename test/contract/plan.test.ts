/** `POST /plan`: a model writes a graph for a goal. The provider answers planners and joiners from a script, and repeats other prompts. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { UpstreamCall } from "../support/upstream.ts";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

/** What planners and joiners are answered, in order; and the prompts that they got. */
const script: unknown[] = [];
const asked: string[] = [];

function answerOf(call: UpstreamCall): { text?: string } {
  const prompt = call.body.messages.map(({ content }) => String(content)).join("\n");
  if (!prompt.includes("# Goal")) return {};
  asked.push(prompt);
  return { text: JSON.stringify(script.shift() ?? null) };
}

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(answerOf);
});
beforeEach(async () => {
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
  world.upstream.forget();
  script.splice(0);
  asked.splice(0);
});
afterAll(() => world.stop());

const task = (id: string, prompt: string, dependencies: string[] = []) => ({ id, prompt, dependencies });
const two = { tasks: [task("t1", "alpha"), task("t2", "{{t1.output}} beta")] };
const finish = (answer: string) => ({ action: "finish", answer, reason: "" });
const replan = (reason: string) => ({ action: "replan", answer: "so far", reason });

const reply = z.looseObject({
  object: z.literal("plan"),
  stopped: z.string(),
  answer: z.string().nullable(),
  outputs: z.record(z.string(), z.unknown()),
  rounds: z.array(
    z.looseObject({ graph: z.string().nullable(), status: z.string().nullable(), repaired: z.boolean() }),
  ),
  error: z.looseObject({ code: z.string() }).nullable(),
  usage: z.looseObject({ cost: z.number() }),
});

const send = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  run.send("/plan", { json: { goal: "reach it", planner_model: "up-planner", ...body }, headers });

async function plan(body: object = {}): Promise<z.infer<typeof reply>> {
  const answer = await send(body);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return reply.parse(answer.json);
}

describe("POST /plan", () => {
  it("has a plan written by one call, and runs it as a graph of the run", async () => {
    script.push(two);
    const done = await plan();
    expect(done).toMatchObject({ stopped: "no_replan", answer: null, outputs: { t2: "alpha beta" }, error: null });
    expect(done.rounds).toMatchObject([{ ...two, repaired: false, status: "completed" }]);
    expect(asked).toHaveLength(1);
    expect(world.upstream.counters.requests).toBe(3);
    const graph = await run.send(`/dag/${done.rounds[0]?.graph ?? ""}`);
    expect(graph.json).toMatchObject({ object: "graph", status: "completed" });
    const { budget } = await documentOf(run);
    expect(budget.calls.spent).toBe(3);
    expect(budget.usd.spent).toBeCloseTo(done.usage.cost, 9);
  });

  it("only writes and checks the plan with run: false", async () => {
    script.push(two);
    expect(await plan({ run: false })).toMatchObject({
      stopped: "planned",
      rounds: [{ ...two, graph: null, status: null }],
    });
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("has an invalid plan written once more, with what is wrong with it; a second one is refused", async () => {
    const ring = { tasks: [task("t1", "{{t2.output}}"), task("t2", "{{t1.output}}")] };
    script.push(ring, two);
    expect((await plan()).rounds).toMatchObject([{ ...two, repaired: true }]);
    expect(asked[1]).toContain("cycle in the graph: t1 → t2 → t1");
    script.push(ring, ring);
    const refused = await send({});
    expect([refused.status, errorOf(refused)]).toMatchObject([
      422,
      { code: "invalid_graph", cycle: ["t1", "t2", "t1"] },
    ]);
  });

  it("lets a joiner answer from the outputs", async () => {
    script.push(two, finish("the end"));
    expect(await plan({ replan: {} })).toMatchObject({ stopped: "finished", answer: "the end" });
    expect(asked[1]).toContain("## t2\nalpha beta");
  });

  it("plans once more when the joiner asks for it, with the results so far, at most max_rounds times", async () => {
    const three = { tasks: [task("t3", "gamma")] };
    script.push(two, replan("gamma is missing"), three, finish("all"));
    expect(await plan({ replan: { max_rounds: 1 } })).toMatchObject({
      stopped: "finished",
      answer: "all",
      outputs: { t3: "gamma" },
      rounds: [{ decision: { action: "replan" } }, { tasks: three.tasks }],
    });
    expect(asked[2]).toContain("gamma is missing");
    expect(asked[2]).toContain("alpha beta");
    script.push(two, replan("more"));
    expect(await plan({ replan: { max_rounds: 0 } })).toMatchObject({ stopped: "max_rounds", answer: "so far" });
  });

  it("stops at a plan that equals an earlier one, and runs it again only if the request says so", async () => {
    const same = { tasks: two.tasks.toReversed() };
    script.push(two, replan("again"), same);
    const stopped = await plan({ replan: { max_rounds: 3 } });
    expect([stopped.stopped, stopped.rounds.length]).toEqual(["same_plan", 1]);
    script.push(two, replan("again"), same, finish("twice"));
    const again = await plan({ replan: { max_rounds: 3, stop_if_same: false } });
    expect([again.stopped, again.rounds.length]).toEqual(["finished", 2]);
  });

  it("writes no further plan once less than min_budget_usd is left", async () => {
    script.push(two, replan("more"));
    expect(await plan({ replan: { max_rounds: 3, min_budget_usd: 1 } })).toMatchObject({ stopped: "min_budget" });
    expect(asked).toHaveLength(2);
  });

  it("bounds the tasks of a plan, and refuses an answer that is no plan", async () => {
    script.push(two, two, two);
    const refused = await send({ max_tasks: 1 });
    expect([refused.status, errorOf(refused).code]).toEqual([502, "schema_violation"]);
  });

  it("keeps what was done when a later call fails, and shows the error", async () => {
    script.push(two, "no object", "no object", "no object");
    const done = await plan({ replan: {} });
    expect(done).toMatchObject({
      stopped: "error",
      error: { code: "schema_violation" },
      outputs: { t2: "alpha beta" },
    });
  });

  it("is refused under a run that cannot pay for the planner, and with headers that it cannot keep", async () => {
    run = await world.openRun({ budget: { calls: 0 }, default_model: "up-1" });
    expect((await send({})).status).toBe(402);
    expect(errorOf(await send({}, { prefer: "respond-async" })).message).toContain("respond-async");
    expect(errorOf(await send({ goal: "" })).code).toBe("invalid_request");
  });
});
