/** stubs/script-python/fanout_script.py: workflow scripts in Python. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { reportLeftOut } from "../support/left-out.ts";
import { hasPython } from "../support/python.ts";
import { documentOf, startWorld, type RunAccess, type World } from "./world.ts";

reportLeftOut("the tests of stubs/script-python", hasPython ? null : "python3");

const STUBS = fileURLToPath(new URL("../../stubs", import.meta.url));

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

/** The JSON value that a script prints. */
async function runScript(program: string, run: Pick<RunAccess, "token">): Promise<unknown> {
  const source = `import json\nfrom fanout_script import *\n${program}`;
  const child = spawn("python3", ["-c", source], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: `${STUBS}/python:${STUBS}/script-python`,
      PYTHONDONTWRITEBYTECODE: "1",
      FANOUT_URL: world.gateway.url,
      FANOUT_TOKEN: run.token,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (complaint !== "") throw new Error(complaint);
  return JSON.parse(printed);
}

describe.runIf(hasPython)("fanout_script.py", () => {
  it("runs calls at once, in order, each item through its stages; a failure is None and an entry", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const program = `
phase("find")
both = parallel([lambda: agent("a"), lambda: agent("{{status/400}} b", label="bad"), lambda: 1 / 0])
through = pipeline(["x", "y"], lambda value, item, index: agent(value), lambda value, item, index: f"{index}{value}{item}")
log("done")
print(json.dumps([both, through, [(f["label"], f["phase"], f["code"]) for f in sorted(failures, key=lambda f: f["code"], reverse=True)], budget.total, budget.spent() > 0]))`;
    expect(await runScript(program, run)).toEqual([
      ["a", null, null],
      ["0xx", "1yy"],
      [
        ["bad", "find", "upstream_error"],
        [null, "find", "script_error"],
      ],
      1,
      true,
    ]);
    expect((await run.send(`/runs/${run.id}/log`)).text).toMatch(/"event_type":"phase".*"output":"find"/);
  });

  it("gives the value that fits a schema", async () => {
    const run = await world.openRun({ default_model: "sim/echo" });
    const schema = `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}`;
    const value = await runScript(`print(json.dumps(agent("x", schema=${schema})))`, run);
    expect(value).toEqual({ n: expect.any(Number) });
  });

  it("stops at the budget, and spends no more", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { calls: 1 } });
    const program = `
agent("first")
try:
    agent("second")
except BudgetError as error:
    print(json.dumps([parallel([lambda: agent("third")]), failures[0]["code"]]))`;
    expect(await runScript(program, run)).toEqual([[null], "budget_exhausted"]);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 1, reserved: 0 });
  });

  it("spends the budget of a child run inside with_run, in its threads too", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const program = `
import fanout
with fanout.with_run(usd=0.25):
    inside = [budget.total, parallel([lambda: budget.total])[0]]
print(json.dumps([inside, budget.total]))`;
    expect(await runScript(program, run)).toEqual([[0.25, 0.25], 1]);
  });
});
