/** `POST /plan`: a model writes a graph for a goal. The provider answers planners and joiners from a script, and repeats other prompts. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { UpstreamCall } from "../support/upstream.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { ASYNC } from "./following.ts";
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
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver(() => 200);
  const secret = `whsec_${Buffer.from("a secret of the operator").toString("base64")}`;
  world = await startWorld(answerOf, { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: secret });
});
beforeEach(async () => {
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
  world.upstream.forget();
  script.splice(0);
  asked.splice(0);
});
afterAll(async () => {
  await world.stop();
  await receiver.stop();
});

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

const send = (body: object, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Answer> =>
  run.send("/plan", {
    json: { goal: "reach it", planner_model: "up-planner", ...body },
    headers,
    ...(signal !== undefined && { signal }),
  });

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

  it("is refused under a run that cannot pay for the planner, and for no goal", async () => {
    run = await world.openRun({ budget: { calls: 0 }, default_model: "up-1" });
    expect((await send({})).status).toBe(402);
    expect(errorOf(await send({ goal: "" })).code).toBe("invalid_request");
  });
});

describe("POST /plan with an Idempotency-Key", () => {
  const key = { "idempotency-key": "plan-1" };

  it("makes each call of its program once, and answers alike when it is repeated", async () => {
    const three = { tasks: [task("t3", "gamma")] };
    script.push(two, replan("gamma is missing"), three, finish("all"));
    const first = await send({ replan: {} }, key);
    const again = await send({ replan: {} }, key);
    expect(reply.parse(first.json)).toMatchObject({ stopped: "finished", answer: "all" });
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect([first, again].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    expect(asked).toHaveLength(4);
    // Four calls of the planner and the joiner, and three tasks.
    expect((await documentOf(run)).budget.calls.spent).toBe(7);
  });

  it("ends as it has ended, whatever is left of the budget by then", async () => {
    const three = { tasks: [task("t3", "gamma")] };
    script.push(two, replan("gamma is missing"), three, finish("all"));
    const first = await send({ replan: { min_budget_usd: 0.9 } }, key);
    await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { budget: { usd: 0.8 } } });
    const again = await send({ replan: { min_budget_usd: 0.9 } }, key);
    expect(reply.parse(first.json)).toMatchObject({ stopped: "finished", answer: "all" });
    expect([again.status, again.json]).toEqual([200, first.json]);
    // Another one, with less than that from the beginning, ends before its second plan: twice.
    const short = { "idempotency-key": "plan-short" };
    script.push(two, replan("gamma is missing"));
    for (const headers of [short, short]) {
      const ended = reply.parse((await send({ replan: { min_budget_usd: 0.9 } }, headers)).json);
      expect(ended).toMatchObject({ stopped: "min_budget", answer: "so far" });
    }
    expect(asked).toHaveLength(6);
  });

  it("goes on where the client has left it", async () => {
    script.push({ tasks: [task("t1", "{{latch/left}} alpha"), task("t2", "{{t1.output}} beta")] }, finish("the end"));
    const leaving = new AbortController();
    const left = send({ replan: {} }, key, leaving.signal).catch(() => null);
    // The planner has answered, and the first task is on its way.
    await expect.poll(() => world.upstream.counters.sends.has("{{latch/left}} alpha")).toBe(true);
    leaving.abort();
    await left;
    world.upstream.open("left");
    const done = reply.parse((await send({ replan: {} }, key)).json);
    expect(done).toMatchObject({ stopped: "finished", answer: "the end", rounds: [{ status: "completed" }] });
    expect(asked).toHaveLength(2);
    expect((await documentOf(run)).budget.calls.spent).toBe(4);
  });

  it("refuses the key of another plan, before anything is asked", async () => {
    script.push(two);
    await send({}, key);
    const other = await send({ goal: "another one" }, key);
    expect([other.status, errorOf(other).code]).toEqual([409, "idempotency_conflict"]);
    expect(asked).toHaveLength(1);
  });
});

describe("POST /plan for a client that does not wait", () => {
  const accepted = z.looseObject({ id: z.string(), status: z.string() });

  it("answers with the group of its graph, which goes on", async () => {
    script.push(two);
    const answer = await send({}, ASYNC);
    const { id } = accepted.parse(answer.json);
    expect([answer.status, answer.headers.get("location")]).toEqual([202, `/groups/${id}`]);
    expect(answer.json).toMatchObject({ object: "group", plan: { ...two, repaired: false } });
    expect(answer.headers.get("preference-applied")).toBe("respond-async");
    await expect
      .poll(async () => (await run.send(`/dag/${id}`)).json)
      .toMatchObject({ object: "graph", status: "completed", outputs: { t2: "alpha beta" } });
  });

  it("has no joiner, and no plan that runs while it is written", async () => {
    for (const [more, headers, param] of [
      [{ replan: {} }, ASYNC, "replan"],
      [{ stream: true }, ASYNC, "stream"],
    ] as const) {
      const refused = await send(more, headers);
      expect([refused.status, errorOf(refused).param]).toEqual([400, param]);
    }
    expect(asked).toEqual([]);
  });

  it("answers so, too, if its graph awaits a confirmation", async () => {
    run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1", confirm_over: { calls: 1 } });
    script.push(two);
    const key = { "idempotency-key": "held" };
    const held = await send({}, key);
    expect([held.status, held.json]).toMatchObject([202, { error: { code: "awaiting_confirmation" }, plan: two }]);
    const { id } = accepted.parse(held.json);
    await run.send(`/groups/${id}/confirm`, { method: "POST" });
    expect(reply.parse((await send({}, key)).json)).toMatchObject({
      outputs: { t2: "alpha beta" },
      rounds: [{ graph: id, status: "completed" }],
    });
    expect(asked).toHaveLength(1);
  });
});

it("POST /plan has the operator's webhook notified of the end of each of its graphs", async () => {
  const three = { tasks: [task("t3", "gamma")] };
  script.push(two, replan("more"), three, finish("all"));
  const { rounds } = await plan({ replan: {}, webhook: { on_end: true } });
  const ids = rounds.map(({ graph }) => graph ?? "");
  const told = () => receiver.deliveries.map(({ headers }) => headers["webhook-id"]);
  await expect.poll(told, { timeout: 90_000 }).toEqual(expect.arrayContaining(ids.map((id) => `evt_${id}_ended`)));
  expect(ids).toHaveLength(2);
});
