/** What the Python stub has for programs that are whole systems: groups, reports, plans, and the loop of a worker. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, runPython } from "../support/python.ts";
import { roleModel } from "../support/role-model/answer.ts";
import { startWorld, type World } from "./world.ts";

let world: World;
let isRepaired: boolean;
beforeAll(async () => {
  world = await startWorld(
    (call) => {
      if (!call.prompt.startsWith("case ")) return roleModel(call);
      isRepaired ||= call.prompt === "case repaired";
      return call.prompt === "case bad" && !isRepaired ? { status: 400 } : { text: call.prompt };
    },
    {},
    { agents: { kind: "pull", models: ["codex"], max_attempts: 2 } },
  );
});
afterAll(() => world.stop());

/** Runs a program in a run of its own. */
async function python(program: string): Promise<unknown> {
  const { token } = await world.openRun({ default_model: "up-1", unpriced: "free" });
  return await runPython(program, { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: token });
}

/** The id of a group of these prompts, once it has ended. */
const GROUP = `
def group_of(prompts):
    return [event for event in llm_stream(prompts) if event["type"] == "group_started"][0]["id"]
`;

describe.runIf(hasPython)("the Python stub", () => {
  it("reads a group by its id, and the report on it", async () => {
    isRepaired = false;
    const seen = await python(`${GROUP}
group = group_of([{"id": "one", "prompt": "case a"}, {"id": "two", "prompt": "case bad", "tier": "P0"}])
read, told = llm_group(group, wait_s=30), llm_report(group)
report([read["status"], read["results"][0], [each["agent"] for each in told["failed"]], told["failed"][0]["action"]])`);
    expect(seen).toEqual(["escalated", "case a", ["two"], "Escalate"]);
  });

  it("repeats what of a group has failed, and keeps the other answers", async () => {
    isRepaired = false;
    world.upstream.forget();
    const seen = await python(`${GROUP}
group = group_of(["case a", "case bad"])
llm_query("case repaired")
report(llm_retry(group)["results"])`);
    expect(seen).toEqual(["case a", "case bad"]);
    // Two calls, that which repairs the provider, and one that is repeated.
    expect(world.upstream.counters.requests).toBe(4);
  });

  it("cancels a group by the key of its request, and there is none of another key", { tags: ["slow"] }, async () => {
    const seen = await python(`
import threading
never = [{"prompt": "never", "model": "agents/codex"}]
waiting = threading.Thread(target=lambda: llm_query_batch(never, error_style="null", idempotency_key="mine"))
waiting.start()
cancelled = {"groups": 0}
while cancelled["groups"] == 0:
    cancelled = llm_cancel("mine", in_flight="abort", wait_s=30)
waiting.join()
report([cancelled["groups"], cancelled["counts"]["cancelled"], llm_cancel("other")["groups"]])`);
    expect(seen).toEqual([1, 1, 0]);
  });

  it("has a plan written and not run, or run", async () => {
    const seen = await python(`
planned = llm_plan("Look at a.py and b.md", run=False)
ran = llm_plan("Look at a.py and b.md")
report([[task["prompt"] for task in planned["rounds"][0]["tasks"]], sorted(ran["outputs"])])`);
    expect(seen).toEqual([
      ["review a.py", "docs b.md"],
      ["t1", "t2"],
    ]);
  });

  it("has a plan run while it is written, and returns its graph", async () => {
    const seen = await python(`
lines = """
{"id": "a", "prompt": "case one"}
{"id": "b", "prompt": "case two and {{a.output}}"}
"""
graph = llm_plan(lines, planner_model="sim/echo", stream=True)
report([graph["status"], graph["plan"]["state"], graph["outputs"]])`);
    expect(seen).toEqual(["completed", "ended", { b: "case two and case one" }]);
  });

  it("serves the items of a pull worker, and reports the exception of one as its failure", async () => {
    const seen = await python(`
import threading
done = []
def work(item):
    if "bad" in item["prompt"]: raise ValueError("it is bad")
    return {"text": item["prompt"].upper()}
asked = [{"prompt": "good", "model": "agents/codex"}, {"prompt": "bad", "model": "agents/codex"}]
client = threading.Thread(target=lambda: done.append(llm_query_batch(asked)))
client.start()
llm_work(work, width=2, until=lambda: bool(done))
client.join()
report(done[0])`);
    expect(seen).toEqual(["GOOD", expect.stringMatching(/^\[error\] .*it is bad/)]);
  });
});
