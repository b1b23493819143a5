/** Calls of graphs that are made before their conditions are known. The provider repeats prompts. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ASYNC } from "./following.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(
    z.string(),
    z.looseObject({ status: z.string(), output: z.string().nullable().optional(), attempts: z.int() }),
  ),
  speculation: z
    .object({
      started: z.int(),
      used: z.int(),
      in_flight: z.int(),
      spent_usd: z.number(),
      wasted_usd: z.number(),
    })
    .optional(),
});
type Graph = z.infer<typeof graph>;

const WAIT = { timeout: 60_000, interval: 20 };
const open = (more: object = {}): Promise<RunAccess> =>
  world.openRun({ budget: { usd: 1 }, default_model: "up-1", ...more });
const SPECULATE = { max_usd: 0.01 };
const sent = (text: string): number =>
  [...world.upstream.counters.sends].reduce((sum, [prompt, sends]) => sum + (prompt.includes(text) ? sends : 0), 0);

/** Opens a graph whose first task answers `says` once its latch is open, and whose second one is likely to start then. */
async function branch(
  run: RunAccess,
  name: string,
  { says, words = "", ...more }: { says: string; words?: string } & Record<string, unknown>,
) {
  const tasks = [
    { id: "rate", prompt: `{{latch/${name}}} ${says}` },
    { id: "write", prompt: `${words}${name} text`, run_if: { task: "rate", contains: "yes" }, likely: true },
    { id: "mail", prompt: "Mail: {{write.output}}", run_if: "any", dependencies: ["write"] },
  ];
  const accepted = await run.send("/dag", { json: { tasks, max_tokens: 50, ...more }, headers: ASYNC });
  expect([accepted.status, accepted.text]).toEqual([202, expect.any(String)]);
  const { id } = z.looseObject({ id: z.string() }).parse(accepted.json);
  return {
    now: async (): Promise<Graph> => graph.parse((await run.send(`/dag/${id}`)).json),
    end: async (): Promise<Graph> => {
      for (;;) {
        const seen = graph.parse((await run.send(`/dag/${id}?wait_ms=20000`)).json);
        if (seen.status !== "running") return seen;
      }
    },
  };
}

describe("a likely task", () => {
  it("has the answer of its early call once its condition holds, without a second request, and is charged once", async () => {
    const run = await open();
    const { now, end } = await branch(run, "used", { says: "yes", speculate: SPECULATE });
    await vi.waitUntil(async () => (await now()).speculation?.spent_usd !== 0, WAIT);
    const before = await now();
    expect(before.tasks["write"]).toMatchObject({ status: "queued", output: null });
    expect(before.speculation).toMatchObject({ started: 1, used: 0, in_flight: 0, wasted_usd: 0 });
    world.upstream.open("used");
    const done = await end();
    expect([done.status, done.tasks["write"]?.output, done.tasks["mail"]?.output]).toEqual([
      "completed",
      "used text",
      "Mail: used text",
    ]);
    expect(done.speculation).toEqual({ ...before.speculation, used: 1 });
    // The prompt of the mail has the text, too.
    expect(sent("used text")).toBe(2);
    expect((await documentOf(run)).budget.calls.spent).toBe(3);
  });

  it("waits for its early call that is in flight when the condition turns out to hold", async () => {
    const run = await open();
    const { now, end } = await branch(run, "waits", {
      says: "yes",
      speculate: SPECULATE,
      words: "{{latch/both}} ",
    });
    await vi.waitUntil(() => sent("waits text") === 1 && sent("latch/waits") === 1, WAIT);
    expect((await now()).speculation).toMatchObject({ started: 1, in_flight: 1 });
    world.upstream.open("waits");
    world.upstream.open("both");
    const done = await end();
    expect([done.status, done.tasks["write"]?.output]).toEqual(["completed", "{{latch/both}} waits text"]);
    expect(done.speculation).toMatchObject({ started: 1, used: 1, in_flight: 0, wasted_usd: 0 });
    expect(sent("waits text")).toBe(2);
  });

  it("is skipped if its condition does not hold: what its early call has cost is wasted, and shown", async () => {
    const run = await open();
    const { now, end } = await branch(run, "wasted", { says: "no", speculate: SPECULATE });
    await vi.waitUntil(async () => (await now()).speculation?.spent_usd !== 0, WAIT);
    world.upstream.open("wasted");
    const done = await end();
    expect([done.status, done.tasks["write"]?.status]).toEqual(["completed", "skipped"]);
    const { wasted_usd: wasted = 0, ...rest } = done.speculation ?? {};
    expect(rest).toEqual({ started: 1, used: 0, in_flight: 0, spent_usd: wasted });
    expect(wasted).toBeGreaterThan(0);
    expect(wasted).toBeLessThanOrEqual(SPECULATE.max_usd);
    expect(sent("wasted text")).toBe(1);
  });

  it.each([400, 500])(
    "starts by itself if its early call fails, once, with %i: the graph does not fail",
    async (status) => {
      const text = `fails ${status} text`;
      const run = await open();
      const tasks = [
        { id: "rate", prompt: `{{latch/fails-${status}}} yes` },
        {
          id: "write",
          prompt: `{{status/${status}/first/1}} ${text}`,
          run_if: { task: "rate", contains: "yes" },
          likely: true,
        },
      ];
      const asked = run.send("/dag", { json: { tasks, speculate: SPECULATE } });
      await vi.waitUntil(() => sent(text) === 1, WAIT);
      world.upstream.open(`fails-${status}`);
      const done = graph.parse((await asked).json);
      expect([done.status, done.tasks["write"]?.status, done.tasks["write"]?.attempts]).toEqual([
        "completed",
        "completed",
        1,
      ]);
      expect(done.speculation).toMatchObject({ started: 1, used: 0 });
      expect(sent(text)).toBe(2);
    },
  );

  it.each([
    ["without a bound", {}],
    ["with a bound below the cost of the call", { speculate: { max_usd: 0.000_001 } }],
  ])("is not made early %s", async (title, more) => {
    const name = `late ${title.length}`;
    const run = await open();
    const { end } = await branch(run, name, { says: "yes", ...more });
    await vi.waitUntil(() => sent(`latch/${name}`) === 1, WAIT);
    // A call of another group is made after all that is due.
    expect((await run.send("/query", { json: { prompt: "after" } })).status).toBe(200);
    expect(sent(`${name} text`)).toBe(0);
    world.upstream.open(name);
    const done = await end();
    expect([done.status, done.speculation?.started ?? 0]).toEqual(["completed", 0]);
  });
});

describe("a task that is not to be made early", () => {
  const rate = { id: "rate", prompt: "yes" };
  const holds = { task: "rate", contains: "yes" };
  it.each([
    ["without a condition", { prompt: "p", dependencies: ["rate"] }],
    ["with elements", { prompt: "{{item}}", run_if: holds, foreach: "{{rate.output.json}}" }],
    ["with alternatives", { prompt: "p", run_if: holds, alternatives: ["other"] }],
    ["whose prompt has the output in question", { prompt: "{{rate.output}}", run_if: holds }],
  ])("is refused as likely: one %s", async (_, task) => {
    const run = await open();
    const tasks = [rate, { id: "write", likely: true, ...task }, { id: "other", prompt: "o" }];
    const answer = await run.send("/dag", { json: { tasks, speculate: SPECULATE } });
    expect([answer.status, errorOf(answer).param]).toEqual([422, "tasks[1].likely"]);
  });

  it("is refused if it calls a tool", async () => {
    const run = await open();
    const tasks = [rate, { id: "write", tool: "search", run_if: holds, likely: true }];
    const answer = await run.send("/dag", { json: { tasks } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "tasks[1].likely"]);
  });
});
