/** examples/orchestrator.py: tiers one after another, errors that are no votes, and a person where the agents do not decide. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import type { UpstreamAnswer } from "../support/upstream.ts";
import { startProgram, type Ended } from "./program.ts";

/** Which agent a prompt is for, by a word of its task. */
const AGENTS = { security: "attacker", correctness: "twice", tests: "covers", cost: "load", style: "comments" };
type Agent = keyof typeof AGENTS;

let verdicts: Partial<Record<Agent, string>>;
let broken: Agent[];
/** The agents in the order in which their calls began, and ended. */
let begun: Agent[];
let world: World;
beforeAll(async () => {
  world = await startWorld(({ prompt }): UpstreamAnswer => {
    const agent = agentOf(prompt);
    begun.push(agent);
    if (broken.includes(agent)) return { status: 400 };
    return { text: JSON.stringify({ verdict: verdicts[agent] ?? "accept", findings: [`${agent} found`] }) };
  });
});
beforeEach(() => {
  [verdicts, broken, begun] = [{}, [], []];
  world.upstream.forget();
});
afterAll(() => world.stop());

function agentOf(prompt: string): Agent {
  const names: Agent[] = ["security", "correctness", "tests", "cost", "style"];
  const found = names.find((name) => prompt.includes(AGENTS[name]));
  if (found === undefined) throw new Error(`a prompt for nobody: ${prompt}`);
  return found;
}

async function orchestrate(): Promise<{ ended: Ended; calls: number }> {
  const run = await world.openRun({ budget: { usd: 1 } });
  const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, FANOUT_MODEL: "up-1" };
  const ended = await startProgram("python3", ["examples/orchestrator.py"], env).ended;
  return { ended, calls: (await documentOf(run)).budget.calls.spent };
}

describe.runIf(hasPython)("orchestrator.py", () => {
  it("asks each tier once the one before has ended, and accepts what weighs more", async () => {
    verdicts = { tests: "reject" };
    const { ended, calls } = await orchestrate();
    expect([ended.status, ended.complaint, calls]).toEqual([0, "", 5]);
    expect(begun.slice(0, 2).toSorted()).toEqual(["correctness", "security"]);
    expect(begun.slice(2, 4).toSorted()).toEqual(["cost", "tests"]);
    expect(begun.slice(4)).toEqual(["style"]);
    expect(ended.printed).toMatch(/\n {2}P1 tests +reject: tests found\n/);
    expect(ended.printed).toMatch(/\nVote: accept, agreement 0\.8, 5 votes, 0 failed\n/);
  });

  it("notes an agent of P2 that failed, and warns of one of P1, without a vote of theirs", async () => {
    broken = ["style", "cost"];
    const { ended } = await orchestrate();
    expect(ended.status).toBe(0);
    expect(ended.printed).toContain("  warnings: cost failed with upstream_error\n");
    expect(ended.printed).toContain("  notes: style failed with upstream_error\n");
    expect(ended.printed).toMatch(/\nVote: accept, agreement 1, 3 votes, 2 failed\n/);
  });

  it("asks for a person if an agent of P0 failed, whatever the others say", async () => {
    broken = ["security"];
    const { ended } = await orchestrate();
    expect(ended.status).toBe(2);
    expect(ended.printed).toContain("  escalations: security failed with upstream_error\n");
    expect(ended.printed.endsWith("\nA person must decide.\n")).toBe(true);
  });

  it("asks for a person if neither verdict weighs more than half", async () => {
    verdicts = { correctness: "reject", tests: "reject" };
    const { ended } = await orchestrate();
    expect(ended.status).toBe(2);
    expect(ended.printed).toContain("\nVote: undecided");
  });

  it("names the report of its group", async () => {
    const { ended } = await orchestrate();
    expect(ended.printed).toMatch(/\nThe report of the gateway has \d\d lines: \/groups\/pg-[\w-]+\/report\n/);
  });
});
