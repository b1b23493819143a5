/** examples/compiler against a model that reads, and tools that compute: a plan's functions are really called. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { roleModel, saying } from "../support/role-model/answer.ts";
import { startTools, type RoleTools } from "../support/role-model/tools.ts";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { exampleAt, startProgram, type Ended } from "./program.ts";

/** A plan as a model writes it: a step a line. */
const planOf = (...steps: object[]): string =>
  steps.map((step, at) => `${JSON.stringify({ id: `t${at + 1}`, ...step })}\n`).join("");
const searching = (place: string) => ({ tool: "search", input: { query: `height of the ${place} in metres` } });
const computing = (expression: string) => ({ tool: "math", input: { expression } });

const DIFFERENCE = computing("{{t1.output}} - {{t2.output}}");
const PLAN = planOf(searching("Tokyo Tower"), searching("Eiffel Tower"), DIFFERENCE);
const QUESTION = "How much taller is the Tokyo Tower than the Eiffel Tower?";

/** Answers of the planner and the joiner in place of the model's own. */
let plans: (string | AsyncIterable<string>)[];
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
  if (text === undefined) return roleModel(call);
  return typeof text === "string" ? saying(call, text) : { pieces: text };
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
    expect(ended.printed).toContain('\n  t1. search("height of the Tokyo Tower in metres") = 333\n');
    expect(ended.printed).toContain('\n  t3. math("{{t1.output}} - {{t2.output}}") = 3\n');
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
    // The planner and the joiner: a call of a tool costs nothing.
    expect([calls, asked.map(({ model }) => model)]).toEqual([2, ["up-1", "up-1"]]);
    expect(ended.printed).toMatch(/\nThe run has spent \$0\.\d{6} for 2 calls\n$/);
  });

  it("has called the first function before the planner has written the rest of the plan", async () => {
    let calledBefore: string[] = [];
    async function* written(): AsyncGenerator<string> {
      yield planOf(searching("Tokyo Tower"));
      // The planner goes on only now: its stream is open, and has one line.
      await expect.poll(() => tools.calls.length, { timeout: 30_000 }).toBe(1);
      calledBefore = tools.calls.map(({ input }) => String(input["query"]));
      yield `${JSON.stringify({ id: "t2", ...searching("Eiffel Tower") })}\n`;
      yield `${JSON.stringify({ id: "t3", ...DIFFERENCE })}\n`;
    }
    plans = [written()];
    const { ended } = await compile();
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(calledBefore).toEqual(["height of the Tokyo Tower in metres"]);
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
  });

  it("offers the planner the run's tools with their arguments", async () => {
    await compile();
    expect(asked[0]?.prompt).toMatch(
      /\n- search\(query\): finds a fact .*\n- math\(expression\): computes an expression /,
    );
  });

  it("says that there is nothing to plan with in a run without tools", async () => {
    const { ended, calls } = await compile(QUESTION, { tools: [] });
    expect([ended.status, calls]).toEqual([1, 0]);
    expect(ended.complaint).toContain("this run has no tools");
  });

  it("shows the planner why its plan was refused, once", async () => {
    plans = [planOf(searching("Shard {{t9.output}}")), PLAN];
    const { ended } = await compile();
    expect(ended.printed).toMatch(/The plan was refused: invalid_request: .*line 1 .*t9/);
    expect(asked[1]?.prompt).toMatch(/# An earlier plan, which was refused\n.*line 1 .*t9/);
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
  });

  it("ends with the gateway's message if the second plan is refused, too", async () => {
    const { ended, calls } = await compile("How tall is the Moon?");
    expect([ended.status, calls, tools.calls]).toEqual([1, 2, []]);
    expect(ended.complaint).toMatch(/^invalid_request: .*the plan has no task/);
  });

  it("plans once more after a line that is no step, with the results of the others", async () => {
    plans = [planOf(searching("Shard"), { tool: "weigh", input: {} }), PLAN];
    const { ended } = await compile();
    expect(ended.printed).toMatch(
      /\n {2}t1\. search\("height of the Shard in metres"\) = 310\n {2}Line 2 of the plan = ! .*weigh/,
    );
    expect(asked[2]?.prompt).toMatch(/# An earlier plan .*\nt1\. search\(.*\) = 310\nLine 2 of the plan = ! .*weigh/);
    expect(ended.printed).toContain("\nANSWER: The first is 3 m taller than the second.\n");
  });

  it("gives a step that calls no function to the model, with the results in it", async () => {
    plans = [planOf(searching("Shard"), { prompt: "estimate {{t1.output}}, 2" })];
    const { ended } = await compile();
    expect([asked[1]?.prompt, asked[1]?.model]).toEqual(["estimate 310, 2", "up-1"]);
    expect(ended.printed).toContain('\n  t2. "estimate {{t1.output}}, 2" = ');
  });

  it("plans once more if the results do not suffice, with what they were", async () => {
    plans = [PLAN, planOf(searching("Shard"))];
    joined = ["REPLAN: which of them?"];
    const { ended, calls } = await compile();
    expect([ended.status, calls]).toEqual([0, 4]);
    expect(asked[2]?.prompt).toContain("REPLAN: which of them?");
    expect(asked[2]?.prompt).toContain('t3. math("{{t1.output}} - {{t2.output}}") = 3');
    expect(ended.printed).toContain("\nANSWER: The results are 310.\n");
  });

  it("stops at a plan that it has run before", async () => {
    plans = [PLAN, PLAN];
    joined = ["REPLAN: more"];
    const { ended } = await compile();
    expect(ended.printed).toContain("REPLAN: more (the planner has no other plan)\n");
  });

  it("does not answer from a step that failed", async () => {
    const plan = planOf(searching("Shard"), computing("tall"));
    plans = [plan, plan];
    const { ended } = await compile();
    expect(ended.printed).toContain('  t2. math("tall") = ! tool "math" answered 400');
    expect(ended.printed).toContain("\nREPLAN: this result says nothing: t2. math");
    expect(ended.status).toBe(1);
  });
});
