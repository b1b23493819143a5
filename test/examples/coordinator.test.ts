/** examples/coordinator.py: a request becomes one batch of several agents, with documents, conflicts, a worker and a monitor. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { logOf } from "../contract/following.ts";
import { documentOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { startProgram, type Ended } from "./program.ts";

const UPSTREAMS = { agents: { kind: "pull", models: ["codex"], max_attempts: 2 } };
const PULL = { FANOUT_PULL_MODEL: "agents/codex" };

let world: World;
let folder: string;
beforeAll(async () => {
  world = await startWorld(undefined, {}, UPSTREAMS);
  folder = await mkdtemp(join(tmpdir(), "fanout-coordinator-"));
});
beforeEach(() => world.upstream.forget());
afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});

type Done = { run: RunAccess; ended: Ended; output: string };
let outputs = 0;

async function coordinator(args: string[], env: Record<string, string> = {}, run?: RunAccess): Promise<Done> {
  const access = run ?? (await world.openRun({ budget: { usd: 1 } }));
  const output = join(folder, String(outputs++));
  const all = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: access.token, FANOUT_MODEL: "up-1", ...env };
  const { ended } = startProgram("python3", ["examples/coordinator.py", ...args, "--output", output], all);
  return { run: access, ended: await ended, output };
}

const documentAt = async (output: string, name: string): Promise<unknown> =>
  JSON.parse(await readFile(join(output, `${name}.json`), "utf8"));

describe.runIf(hasPython)("coordinator.py", () => {
  it("parses a request, runs its parts at once, and writes a status and a result for each", async () => {
    const request = 'Review "security issues" auth.py login.py AND test auth2.py AND docs';
    const { run, ended, output } = await coordinator([request]);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect([...world.upstream.counters.sends.keys()].toSorted()).toEqual([
      "docs: docs task\nFiles: none",
      "review: security issues\nFiles: auth.py, login.py",
      "test: test task\nFiles: auth2.py",
    ]);
    expect(await documentAt(output, "manifest")).toMatchObject({
      task_id: expect.stringMatching(/^\d{8}_\d{6}$/),
      tasks: [
        { id: 1, type: "review", description: "security issues", files: ["auth.py", "login.py"] },
        { id: 2, type: "test", description: "test task", files: ["auth2.py"] },
        { id: 3, type: "docs", files: [] },
      ],
      locked_files: ["auth.py", "auth2.py", "login.py"],
      status: "completed",
    });
    expect(await documentAt(output, "codex_1_status")).toMatchObject({
      agent: "codex",
      task_id: "1",
      status: "completed",
      started_at: expect.any(String),
      duration: expect.any(Number),
    });
    expect(await documentAt(output, "glm_2_result")).toMatchObject({
      agent: "glm",
      success: true,
      output: "test: test task\nFiles: auth2.py",
      error: null,
    });
    expect(await documentAt(output, "proposal")).toMatchObject({
      total_tasks: 3,
      safe_changes: [2, 3],
      risky_changes: [1],
      conflicts: [],
      output_dir: output,
    });
    expect(await readdir(output)).toHaveLength(8);
    expect((await documentOf(run)).budget.calls.spent).toBe(3);
  });

  it("names the files that several parts work on, and with --conflicts reject sends nothing", async () => {
    const request = "review auth.py AND test auth.py";
    const { ended, output } = await coordinator([request]);
    expect(ended.printed).toContain("conflict: auth.py is named by tasks 1, 2\n");
    expect(await documentAt(output, "proposal")).toMatchObject({ conflicts: [{ file: "auth.py", items: ["1", "2"] }] });
    world.upstream.forget();
    const refused = await coordinator([request, "--conflicts", "reject"]);
    expect([refused.ended.status, world.upstream.counters.requests]).toEqual([1, 0]);
    expect(refused.ended.complaint).toContain("invalid_graph: the items are not independent: no_shared_state");
    expect((await documentOf(refused.run)).budget.calls.spent).toBe(0);
  });

  it("runs conflicting parts one after another with --conflicts serialize", async () => {
    const request = 'review "{{delay/300}} first" auth.py AND test auth.py AND docs b.py';
    const { run, ended } = await coordinator([request, "--conflicts", "serialize"]);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    const lines = await logOf(run);
    const at = (event: string, index: number) =>
      lines.findIndex((line) => line.event_type === event && line["index"] === index);
    expect(at("slot_completed", 0)).toBeLessThan(at("attempt_started", 1));
    expect(at("attempt_started", 2)).toBeLessThan(at("slot_completed", 0));
  });

  it("has a worker serve the agents that have no address, beside those that have one", async () => {
    const { run, ended, output } = await coordinator(["review a.py AND test b.py AND audit c.py"], PULL);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt(output, "codex_3_result")).toMatchObject({
      output: "Looked at: audit: audit task\nFiles: c.py",
    });
    expect([...world.upstream.counters.sends.keys()]).toEqual(["test: test task\nFiles: b.py"]);
    expect((await documentOf(run)).budget.calls.spent).toBe(3);
  });

  it("keeps the lease of an agent that works for longer than it lasts: the item is worked on once", async () => {
    const script = "import sys, time; time.sleep(3); print('slow')";
    const env = { ...PULL, COORDINATOR_LEASE_MS: "2000", CODEX_COMMAND: `python3 -c "${script}"` };
    const { run, ended, output } = await coordinator(["review a.py"], env);
    expect([ended.status, ended.complaint]).toEqual([0, ""]);
    expect(await documentAt(output, "codex_1_result")).toMatchObject({ success: true, output: "slow" });
    const started = (await logOf(run)).filter((line) => line.event_type === "attempt_started");
    expect(started).toHaveLength(1);
  });

  it("reports an agent whose program fails, and completes the others", async () => {
    const env = { ...PULL, CODEX_COMMAND: "python3 -c 'raise SystemExit(3)'" };
    const { ended, output } = await coordinator(["review a.py AND test b.py"], env);
    expect(ended.status).toBe(1);
    expect(await documentAt(output, "codex_1_result")).toMatchObject({ success: false, output: null });
    expect(await documentAt(output, "codex_1_status")).toMatchObject({ status: "error" });
    expect(ended.printed).toContain("partial: 1 of 2 completed");
  });

  it("takes what there is at its deadline, and cancels the rest", async () => {
    const opened = coordinator(['test "{{fault/hang}}" a.py AND docs b.py'], { COORDINATOR_DEADLINE_S: "1" });
    const { run, ended, output } = await opened;
    expect(ended.printed).toContain("1 of 2 completed");
    expect(await documentAt(output, "glm_1_status")).toMatchObject({ status: "error" });
    expect(await documentAt(output, "glm_2_result")).toMatchObject({ success: true });
    expect((await documentOf(run)).budget.usd.reserved).toBe(0);
  });

  it("shows a monitor what a request has done", async () => {
    const { run, ended } = await coordinator(["test a.py AND docs b.py"]);
    const group = /pg-\d{13}-\w+/.exec(ended.printed)?.[0] ?? "";
    const { ended: shown } = await coordinator(["monitor", group], {}, run);
    const visibility = z.looseObject({}).parse(JSON.parse(shown.printed));
    expect(visibility).toMatchObject({ status: "idle", task: group, progress: 1, last_output: expect.any(String) });
  });

  it("loses and duplicates none of 500 writes by 50 writers at once", async () => {
    const { run, ended } = await coordinator(["writes"]);
    expect([ended.status, ended.printed]).toEqual([0, "500 writes by 50 writers: 0 lost, 0 duplicated\n"]);
    const written = (await logOf(run)).filter((line) => line.event_type === "agent_write");
    expect(new Set(written.map((line) => line["data"])).size).toBe(500);
  });

  it("refuses a part without an action", async () => {
    const { ended } = await coordinator(['"only a description" a.py']);
    expect([ended.status, world.upstream.counters.requests]).toEqual([1, 0]);
    expect(ended.complaint).toContain("expected an action first in each part");
  });
});
