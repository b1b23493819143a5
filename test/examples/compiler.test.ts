/** examples/compiler.py: a model's plan runs as a graph, is repaired once, and is replaced at most once. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import type { UpstreamAnswer } from "../support/upstream.ts";
import { startProgram, type Ended } from "./program.ts";

const PLAN = `1. search("height of A")\n2. search("height of B")\n3. math("$1 - $2")\n4. join()`;

let plans: string[];
let joined: string[];
/** Prompts of the steps, in the order in which they arrived. */
let steps: string[];
let planned: string[];
let world: World;
beforeAll(async () => {
  world = await startWorld(({ prompt }) => answerTo(prompt));
});
beforeEach(() => {
  [plans, joined, steps, planned] = [[PLAN], ["ANSWER: 3 m"], [], []];
  world.upstream.forget();
});
afterAll(() => world.stop());

function answerTo(prompt: string): UpstreamAnswer {
  if (prompt.includes("\n\nResults:\n")) return { text: joined.shift() ?? "ANSWER: none" };
  if (prompt.startsWith("Question: ")) {
    planned.push(prompt);
    return { text: plans.shift() ?? PLAN };
  }
  steps.push(prompt);
  return { text: `<${prompt}>` };
}

async function compile(): Promise<{ ended: Ended; calls: number }> {
  const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
  const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, FANOUT_MODEL: "up-1" };
  const ended = await startProgram("python3", ["examples/compiler.py", "How much taller is A than B?"], env).ended;
  const { usd, calls } = (await documentOf(run)).budget;
  if (ended.status === 0) {
    expect(ended.printed).toContain(`The run has spent $${usd.spent.toFixed(6)} for ${calls.spent} calls\n`);
  }
  return { ended, calls: calls.spent };
}

describe.runIf(hasPython)("compiler.py", () => {
  it("runs a plan as a graph whose steps have the results of earlier ones, and joins them", async () => {
    const { ended, calls } = await compile();
    expect([ended.status, ended.complaint, calls]).toEqual([0, "", 5]);
    expect(steps.slice(0, 2).toSorted()).toEqual(["height of A", "height of B"]);
    expect(steps[2]).toBe("<height of A> - <height of B>");
    expect(ended.printed).toContain("Plan of 3 steps, 2 at once, 2 one after another:\n");
    expect(ended.printed).toMatch(/\n {2}3\. math\("\$1 - \$2"\) +<<height of A> - <height of B>>\n/);
    expect(ended.printed).toContain("\nANSWER: 3 m\n");
  });

  it("shows the planner why its plan was refused, once", async () => {
    plans = [`1. search("x $2")\n2. math("$1")\n3. join()`, PLAN];
    const { ended } = await compile();
    expect(ended.printed).toMatch(/The plan was refused: invalid_graph: .*cycle/);
    expect(planned[1]).toContain("This plan was refused:\n1. search");
    expect(ended.printed).toContain("\nANSWER: 3 m\n");
  });

  it("ends with the gateway's message if the second plan is refused, too", async () => {
    plans = ["no plan at all", "nor this one"];
    const { ended, calls } = await compile();
    expect([ended.status, calls, steps.length]).toEqual([1, 2, 0]);
    expect(ended.complaint).toMatch(/^(invalid_request|invalid_graph): /);
  });

  it("plans once more if the results do not suffice, with what they were", async () => {
    const second = `1. search("height of A without its mast")\n2. join()`;
    [plans, joined] = [
      [PLAN, second],
      ["REPLAN: which height?", "ANSWER: 2 m"],
    ];
    const { ended, calls } = await compile();
    expect([ended.status, calls]).toEqual([0, 8]);
    expect(planned[1]).toContain("REPLAN: which height?");
    expect(planned[1]).toContain("1. <height of A>");
    expect(ended.printed).toContain("\nANSWER: 2 m\n");
  });

  it("stops at a plan that it has run before", async () => {
    [plans, joined] = [[PLAN, PLAN], ["REPLAN: more"]];
    const { ended, calls } = await compile();
    expect([ended.status, calls]).toEqual([0, 6]);
    expect(ended.printed).toContain("REPLAN: more (the planner has no other plan)\n");
  });
});
