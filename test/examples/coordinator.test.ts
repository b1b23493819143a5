/** examples/coordinator against a model that reads: files, edits, reviews, proposals, what is applied, workers and a monitor. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { logOf } from "../contract/following.ts";
import { documentOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { roleModel } from "../support/role-model/answer.ts";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { exampleAt, processesBelow, startProgram, type Ended, type Started } from "./program.ts";

const UPSTREAMS = { agents: { kind: "pull", models: ["codex"], max_attempts: 2 } };
const AUTH =
  "import ast\n\n\ndef login(text):\n    return eval(text)\n\n\ndef logout(user):\n    if user == None:\n        return\n";
const SEEDS_COMMAND = 'review "security issues" auth.py \\\n  AND test auth.py \\\n  AND docs README.md';

let answer: (call: UpstreamCall) => UpstreamAnswer;
let world: World;
let folder: string;
beforeAll(async () => {
  world = await startWorld((call) => answer(call), {}, UPSTREAMS);
});
beforeEach(async () => {
  answer = roleModel;
  world.upstream.forget();
  folder = await mkdtemp(join(tmpdir(), "fanout-coordinator-"));
  await put("auth.py", AUTH);
  await put("README.md", "# Login\n");
  return () => rm(folder, { recursive: true, force: true });
});
afterAll(() => world.stop());

const put = (name: string, text: string) => writeFile(join(folder, name), text);
const textOf = (name: string) => readFile(join(folder, name), "utf8");

type Done = { run: RunAccess; ended: Ended };

async function begin(args: string[], env: Record<string, string> = {}, run?: RunAccess) {
  const access = run ?? (await world.openRun({ budget: { usd: 1 } }));
  const all = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: access.token, FANOUT_MODEL: "up-1", ...env };
  const program: Started = startProgram("python3", [exampleAt("coordinator"), ...args], all, folder);
  return { run: access, program };
}

async function coordinator(args: string[], env: Record<string, string> = {}, run?: RunAccess): Promise<Done> {
  const { run: access, program } = await begin(args, env, run);
  return { run: access, ended: await program.ended };
}

/** The documents of the only request, by the beginning of their names. */
async function documentAt(name: string): Promise<Record<string, unknown>> {
  const [request = ""] = await readdir(join(folder, "coordinator-output"));
  const place = join(folder, "coordinator-output", request);
  const file = (await readdir(place)).find((each) => each.startsWith(name));
  return z.record(z.string(), z.unknown()).parse(JSON.parse(await readFile(join(place, file ?? name), "utf8")));
}

/** A program of a command-line agent: `before` runs first, then it prints. */
async function agentProgram(before: string, printed: string): Promise<Record<string, string>> {
  await put("agent.py", `import json, os, sys, time\ntext = sys.stdin.read()\n${before}\nprint(${printed})\n`);
  return { FANOUT_PULL_MODEL: "agents/codex", CODEX_COMMAND: `python3 ${join(folder, "agent.py")}` };
}

describe.runIf(hasPython)("coordinator", () => {
  it("takes the request as pasted, with continued lines inside its quotes", async () => {
    const { ended } = await coordinator([SEEDS_COMMAND]);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt("manifest")).toMatchObject({
      task_id: expect.stringMatching(/^\d{8}_\d{6}_[0-9a-f]{4}$/),
      tasks: [
        { id: 1, type: "review", description: "security issues", files: ["auth.py"] },
        { id: 2, type: "test", description: "test task", files: ["auth.py"] },
        { id: 3, type: "docs", files: ["README.md"] },
      ],
      locked_files: ["README.md", "auth.py"],
      status: "completed",
    });
    expect(ended.printed).toContain("3 of 3 completed");
  });

  it("edits the files: the model read them, another agent approved, apply wrote what git accepts", async () => {
    const { run, ended } = await coordinator([SEEDS_COMMAND]);
    expect(ended.status).toBe(0);
    expect(await textOf("auth.py")).toBe(AUTH);
    expect(await documentAt("proposal_")).toMatchObject({
      total_tasks: 3,
      safe_changes: [2, 3],
      risky_changes: [1],
      conflicts: [{ file: "auth.py", items: ["1", "2"] }],
      edits: [
        {
          id: "1.1",
          agent: "codex",
          path: "auth.py",
          replace: "    return ast.literal_eval(text)",
          conflicts_with: [],
        },
        { id: "1.2", agent: "codex", path: "auth.py", replace: "    if user is None:" },
        { id: "2.1", agent: "glm", path: "test_auth.py", search: "" },
        { id: "3.1", agent: "glm", path: "README.md" },
      ],
      outputs: { 1: { agent: "codex", error: null } },
    });
    // Three tasks and a review of each edit; files that two tasks read are stored once.
    expect((await documentOf(run)).budget.calls.spent).toBe(7);
    const { ended: applied } = await coordinator(["apply"], {}, run);
    expect([applied.status, applied.complaint]).toEqual([0, ""]);
    expect(applied.printed).toContain("4 of 4 edits applied\n");
    expect(await textOf("auth.py")).toBe(AUTH.replace("eval(", "ast.literal_eval(").replace("== None", "is None"));
    expect(await textOf("test_auth.py")).toContain("from auth import login, logout\n");
    expect(await textOf("README.md")).toBe("# Login\n\nThis page was checked against the code.\n");
    const { ended: again } = await coordinator(["apply"], {}, run);
    expect(again.printed).toBe("4 of 4 edits applied\n");
    expect(await textOf("README.md")).toBe("# Login\n\nThis page was checked against the code.\n");
  });

  it("has each edit reviewed by another agent, and leaves what it does not approve", async () => {
    answer = (call) => {
      const { text = "" } = roleModel(call);
      return { text: text.replace("ast.literal_eval", "print") };
    };
    await coordinator(["review auth.py"]);
    expect(await documentAt("proposal_")).toMatchObject({
      edits: [{ id: "1.1", review: { by: "glm", approved: true } }, { id: "1.2" }],
    });
    answer = (call) => {
      const { text = "" } = roleModel(call);
      return { text: text.replace("ast.literal_eval(", "eval( ").replace('"approved":true', '"approved":false') };
    };
    const { ended } = await coordinator(["review auth.py"]);
    expect(ended.printed).toMatch(/edit 1\.1 of auth\.py by codex: .* \(not approved: /);
    const { ended: applied } = await coordinator(["apply"]);
    expect(applied.printed).toContain("0 of 2 edits applied\n");
    expect(await textOf("auth.py")).toBe(AUTH);
  });

  it("never applies edits of two agents to the same lines, also with --all", async () => {
    await coordinator(["review auth.py AND audit auth.py"]);
    const { ended } = await coordinator(["apply", "--all"]);
    expect(ended.printed).toContain("left    1.1 auth.py: conflicts with 2.1\n");
    expect(ended.printed).toContain("0 of 4 edits applied\n");
    expect(await textOf("auth.py")).toBe(AUTH);
  });

  it("writes a status before a task is sent, and a status and a result when it has ended", async () => {
    const seen: unknown[] = [];
    answer = (call) => {
      if (call.arrival === 0)
        return { ...roleModel(call), after: documentAt("glm_1_status").then((it) => seen.push(it)) };
      return roleModel(call);
    };
    await coordinator(["test auth.py"]);
    const id = { agent: "glm", task_id: "1", agent_id: expect.stringMatching(/^glm_\d{10}_[1-9]\d{3}$/) };
    expect(seen).toMatchObject([{ ...id, status: "running", started_at: expect.any(String), completed_at: null }]);
    expect(await documentAt("glm_1_status")).toMatchObject({
      ...id,
      status: "completed",
      completed_at: expect.any(String),
      duration: expect.any(Number),
    });
    expect(await documentAt("glm_1_result")).toMatchObject({ agent: "glm", success: true, error: null });
  });

  it("plans free words with --task, and gives each task the files that it names", async () => {
    const { ended } = await coordinator(["--task", "test the login", "--files", "auth.py", "README.md", "--parallel"]);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt("manifest")).toMatchObject({
      tasks: [
        { type: "test", files: ["auth.py"] },
        { type: "docs", files: ["README.md"] },
      ],
    });
    expect(await documentAt("proposal_")).toMatchObject({ edits: [{ path: "test_auth.py" }, { path: "README.md" }] });
  });

  it("names the files that several parts work on, and with --conflicts reject sends nothing", async () => {
    const { ended } = await coordinator(["review auth.py AND test auth.py"]);
    expect(ended.printed).toContain("  conflict: auth.py is named by tasks 1, 2\n");
    world.upstream.forget();
    const refused = await coordinator(["review auth.py AND test auth.py", "--conflicts", "reject"]);
    expect([refused.ended.status, world.upstream.counters.requests]).toEqual([1, 0]);
    expect(refused.ended.complaint).toContain("the items are not independent: no_shared_state");
  });

  it("refuses a part without an action and a file that is not there, before anything is sent", async () => {
    const { ended } = await coordinator(['"only a description" auth.py']);
    expect(ended.complaint).toContain("expected an action first in each part");
    const { ended: absent } = await coordinator(["review absent.py"]);
    expect(absent.complaint).toContain("there is no file absent.py in ");
    expect([ended.status, absent.status, world.upstream.counters.requests]).toEqual([1, 1, 0]);
  });

  it("gives long texts to the agent for long texts", async () => {
    await put("long.py", "x = 1\n".repeat(70_000));
    await coordinator(["review long.py"]);
    expect(await documentAt("gemini_1_status")).toMatchObject({ agent: "gemini" });
  });

  it("takes what there is at its deadline, and cancels the rest", async () => {
    answer = (call) => (call.prompt.includes("test: test task") ? { fault: "hang" } : roleModel(call));
    const { run, ended } = await coordinator(["test auth.py AND docs README.md"], { COORDINATOR_DEADLINE_S: "1" });
    expect(ended.printed).toContain("1 of 2 completed");
    expect(await documentAt("glm_1_status")).toMatchObject({ status: "error" });
    expect(await documentAt("glm_2_result")).toMatchObject({ success: true });
    expect((await documentOf(run)).budget.usd.reserved).toBe(0);
  });

  it("shows a monitor what the newest request does", async () => {
    const { promise: looked, resolve: look } = Promise.withResolvers<void>();
    const { promise: sent, resolve: send } = Promise.withResolvers<void>();
    answer = (call) => {
      send();
      return { ...roleModel(call), after: looked };
    };
    const { program } = await begin(["test auth.py"]);
    await sent;
    const { ended: looks } = await coordinator(["monitor", "--once"]);
    expect(looks.printed).toMatch(/"status": "active", .*"progress": 0.0, "agents": \{"glm 1": "running"\}/);
    look();
    await program.ended;
    const { ended } = await coordinator(["monitor"]);
    expect(JSON.parse(ended.printed)).toMatchObject({ status: "idle", progress: 1, agents: { "glm 1": "completed" } });
  });

  it("loses and duplicates none of 500 writes by 50 writers at once", async () => {
    const { run, ended } = await coordinator(["writes"]);
    expect([ended.status, ended.printed]).toEqual([0, "500 writes by 50 writers: 0 lost, 0 duplicated\n"]);
    const written = (await logOf(run)).filter((line) => line.event_type === "agent_write");
    expect(new Set(written.map((line) => line["data"])).size).toBe(500);
  });
});

describe.runIf(hasPython)("coordinator's worker", () => {
  it("serves the agents that are programs, whose edits count like others", async () => {
    const edit = '{"path": "auth.py", "search": "eval(text)", "replace": "int(text)", "why": "safe"}';
    const env = await agentProgram(
      "",
      `"Sure:\\n" + json.dumps({"summary": text, "edits": [${edit}] if "<file" in text else []})`,
    );
    const { ended } = await coordinator(["review auth.py AND test README.md"], env);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt("proposal_")).toMatchObject({
      edits: [{ agent: "codex", path: "auth.py", replace: "int(text)", review: { by: "glm", approved: true } }],
    });
  });

  it("runs four agents at once on two workers", async () => {
    // Each ends once all four have begun, and writes which worker has started it.
    const meeting =
      "open(f'begun.{os.getpid()}.{os.getppid()}', 'w').close()\n" +
      "while sum(name.startswith('begun.') for name in os.listdir()) < 4: time.sleep(0.02)";
    const env = await agentProgram(meeting, '"done"');
    const { run, program } = await begin(
      ["review auth.py AND review README.md AND audit auth.py AND audit README.md", "--width", "2"],
      env,
    );
    const helper = startProgram(
      "python3",
      [exampleAt("coordinator"), "worker", "--width", "2"],
      { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, ...env },
      folder,
    );
    const ended = await program.ended;
    process.kill(helper.pid, "SIGKILL");
    await helper.ended;
    expect(ended.printed).toContain("4 of 4 completed");
    const group = (await logOf(run)).find(({ event_type }) => event_type === "group_completed");
    expect(group).toMatchObject({ count: 4, completed: 4, peak_parallel: 4 });
    const begun = (await readdir(folder)).filter((name) => name.startsWith("begun."));
    expect([begun.length, new Set(begun.map((name) => name.split(".")[2])).size]).toEqual([4, 2]);
    console.log(`four agents at once on two workers: ${String(group?.["execution_ms"])} ms`);
  });

  it("gives a program a terminal with --tty, and none without", async () => {
    const env = await agentProgram("", '"\\x1b[1mterminal:\\x1b[0m", os.isatty(0), os.isatty(1), "<file" in text');
    await coordinator(["review auth.py", "--tty"], env);
    expect(await documentAt("codex_1_result")).toMatchObject({ output: "terminal: True True True" });
    await rm(join(folder, "coordinator-output"), { recursive: true });
    await coordinator(["review auth.py"], env);
    expect(await documentAt("codex_1_result")).toMatchObject({ output: expect.stringContaining("False False True") });
  });

  it("keeps the lease of an agent that works for longer than it lasts: the item is worked on once", async () => {
    const env = { ...(await agentProgram("time.sleep(5)", '"slow"')), COORDINATOR_LEASE_S: "2" };
    const { run, ended } = await coordinator(["review auth.py"], env);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt("codex_1_result")).toMatchObject({ success: true, output: "slow" });
    expect((await logOf(run)).filter((line) => line.event_type === "attempt_started")).toHaveLength(1);
  });

  it("reports an agent whose program fails or is not installed, and completes the others", async () => {
    const env = await agentProgram("raise SystemExit(3)", '""');
    const { ended } = await coordinator(["review auth.py AND test auth.py"], env);
    expect(ended.status).toBe(1);
    expect(await documentAt("codex_1_result")).toMatchObject({ success: false, output: null });
    expect(ended.printed).toContain("1 of 2 completed");
    const { ended: absent } = await coordinator(["review auth.py AND test auth.py"], {
      ...env,
      CODEX_COMMAND: "not-there",
    });
    expect(absent.printed).toContain(
      "! 1  review    codex    the agent codex has no program: not-there is not installed",
    );
    expect(absent.printed).toContain("1 of 2 completed");
  });

  it("ends its worker and the worker's programs when it is killed", async () => {
    const env = await agentProgram("open('started', 'w').close(); time.sleep(600)", '""');
    const { run, program } = await begin(["review auth.py"], env);
    await expect.poll(() => readdir(folder)).toContain("started");
    const below = await processesBelow(program.pid);
    expect(below.length).toBeGreaterThan(0);
    process.kill(program.pid, "SIGKILL");
    await program.ended.catch(() => undefined);
    for (const { pid } of below) await expect.poll(() => isAlive(pid)).toBe(false);
    await run.send(`/runs/${run.id}`, { method: "DELETE" });
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
