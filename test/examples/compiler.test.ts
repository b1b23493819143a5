/** examples/compiler against a model that reads, and tools that compute: a plan's functions are really called. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { roleModel } from "../support/role-model/answer.ts";
import { startTools, type RoleTools } from "../support/role-model/tools.ts";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { exampleAt, startProgram, type Ended } from "./program.ts";

const PLAN = `1. search("height of the Tokyo Tower in metres")\n2. search("height of the Eiffel Tower in metres")\n3. math("$1 - $2")\n4. join()`;
const QUESTION = "How much taller is the Tokyo Tower than the Eiffel Tower?";

/** Answers of the planner and the joiner in place of the model's own. */
let plans: string[];
let joined: string[];
let asked: UpstreamCall[];
let tools: RoleTools;
let world: World;
beforeAll(async () => {
  tools = await startTools();
  world = await startWorld(answer, { TOOL_HOSTS: new URL(tools.url).host });
});
beforeEach(() => {
  [plans, joined, asked, tools.calls.length] = [[], [], [], 0];
  world.upstream.forget();
});
afterAll(async () => {
  await world.stop();
  await tools.stop();
});

function answer(call: UpstreamCall): UpstreamAnswer {
  asked.push(call);
  const text = call.prompt.includes("# Results") ? joined.shift() : plans.shift();
  return text === undefined ? roleModel(call) : { text };
}

/** The tools of a run, as its operator registers them. */
const toolsOf = () => [
  { name: "search", url: `${tools.url}/search`, description: "finds a fact", ...parameters("query") },
  { name: "math", url: `${tools.url}/math`, description: "computes an expression", ...parameters("expression") },
];
const parameters = (name: string) => ({
  parameters: { type: "object", properties: { [name]: { type: "string" } }, required: [name] },
});

async function compile(question = QUESTION, body?: Record<string, unknown>): Promise<{ ended: Ended; calls: number }> {
  const run = await world.openRun({ budget: { usd: 1 }, tools: toolsOf(), ...body });
  const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, FANOUT_MODEL: "up-1" };
  const { ended } = startProgram("python3", [exampleAt("compiler"), question], env);
  return { ended: await ended, calls: (await documentOf(run)).budget.calls.spent };
}

describe.runIf(hasPython)("compiler", () => {
  it("calls the tools of a plan, with the results of earlier steps, and joins what they gave", async () => {
    const { ended, calls } = await compile();
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(
      tools.calls.slice(0, 2).toSorted((a, b) => (String(a.input["query"]) < String(b.input["query"]) ? -1 : 1)),
    ).toEqual([
      { tool_name: "search", input: { query: "height of the Eiffel Tower in metres" } },
      { tool_name: "search", input: { query: "height of the Tokyo Tower in metres" } },
    ]);
    expect(tools.calls.slice(2)).toEqual([{ tool_name: "math", input: { expression: "333 - 330" } }]);
    expect(ended.printed).toContain('\n  3. math("$1 - $2") = 3\n');
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
    // The planner and the joiner: a call of a tool costs nothing.
    expect([calls, asked.length]).toEqual([2, 2]);
    expect(ended.printed).toMatch(/\nThe run has spent \$0\.\d{6} for 2 calls\n$/);
  });

  it("offers the planner the run's tools with their arguments", async () => {
    await compile();
    const [system] = asked[0]?.body.messages ?? [];
    expect(String(system?.content)).toContain(
      "- search(query): finds a fact\n- math(expression): computes an expression\n",
    );
  });

  it("says that there is nothing to plan with in a run without tools", async () => {
    const { ended, calls } = await compile(QUESTION, { tools: [] });
    expect([ended.status, calls]).toEqual([1, 0]);
    expect(ended.complaint).toContain("this run has no tools");
  });

  it("shows the planner why its plan was refused, once", async () => {
    plans = [`1. search("x $2")\n2. math("$1")\n3. join()`, PLAN];
    const { ended } = await compile();
    expect(ended.printed).toMatch(/The plan was refused: invalid_graph: .*cycle/);
    expect(asked[1]?.prompt).toContain("This plan was refused:\n1. search");
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
  });

  it("ends with the gateway's message if the second plan is refused, too", async () => {
    const { ended, calls } = await compile("How tall is the Moon?");
    expect([ended.status, calls, tools.calls]).toEqual([1, 2, []]);
    expect(ended.complaint).toMatch(/^(invalid_request|invalid_graph): /);
  });

  it("gives a step whose function is no tool to the model, with its name and its arguments", async () => {
    plans = [`1. search("height of the Shard")\n2. estimate("$1", 2)\n3. join()`];
    await compile();
    expect(asked[1]?.prompt).toBe('estimate("310", 2)');
  });

  it("plans once more if the results do not suffice, with what they were", async () => {
    plans = [PLAN, `1. search("height of the Shard in metres")\n2. join()`];
    joined = ["REPLAN: which of them?"];
    const { ended, calls } = await compile();
    expect([ended.status, calls]).toEqual([0, 4]);
    expect(asked[2]?.prompt).toContain("REPLAN: which of them?");
    expect(asked[2]?.prompt).toContain('3. math("$1 - $2") = 3');
    expect(ended.printed).toContain("\nANSWER: The results are 310.\n");
  });

  it("stops at a plan that it has run before", async () => {
    plans = [PLAN, PLAN];
    joined = ["REPLAN: more"];
    const { ended } = await compile();
    expect(ended.printed).toContain("REPLAN: more (the planner has no other plan)\n");
  });

  it("does not answer from a step that failed", async () => {
    const plan = `1. search("height of the Shard")\n2. math("tall")\n3. join()`;
    plans = [plan, plan];
    const { ended } = await compile();
    expect(ended.printed).toContain('  2. math("tall") = ! tool "math" answered 400');
    expect(ended.printed).toContain("\nREPLAN: this result says nothing: 2. math");
    expect(ended.status).toBe(1);
  });
});
