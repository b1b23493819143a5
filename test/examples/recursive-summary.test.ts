/** examples/recursive_summary.py: what it prints, and what the gateway recorded of it and its sub-agents. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { hasPython } from "../support/python.ts";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import type { UpstreamAnswer } from "../support/upstream.ts";
import { familyOf, processesBelow, startProgram, type Ended, type Started } from "./program.ts";
import { expectBalanced, look, readTree, runsOf } from "./run-tree.ts";

const BOOK = fileURLToPath(new URL("../../examples/data/opticks.txt", import.meta.url));
const SUMMARY = "Light is made of rays.";
const WHOLE = "Newton tells what light is made of.";

/** What the provider says; a test may change how. */
let answer: () => UpstreamAnswer = () => ({});
let world: World;
beforeAll(async () => {
  world = await startWorld((call) => {
    const isOfSummaries = call.prompt.split(/\n+/).every((line) => line === SUMMARY || line === WHOLE);
    return { text: isOfSummaries ? WHOLE : SUMMARY, ...answer() };
  });
});
beforeEach(() => {
  answer = () => ({});
  world.upstream.forget();
});
afterAll(() => world.stop());

const openRun = (body: Record<string, unknown>) => world.openRun({ name: "book", default_model: "up-1", ...body });
function summarise(run: RunAccess, env: Record<string, string> = {}, args: readonly string[] = []): Started {
  const access = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token };
  return startProgram("python3", ["examples/recursive_summary.py", ...args], { ...access, ...env });
}

/** Waits until the program's calls have reached the provider in such a number. Throws if it ends before. */
async function untilAsked(requests: number, program: Started): Promise<void> {
  const early = program.ended.then((ended) => Promise.reject(new Error(`it ended early: ${JSON.stringify(ended)}`)));
  early.catch(() => undefined);
  while (world.upstream.counters.requests < requests) await Promise.race([sleep(20), early]);
}

describe.runIf(hasPython)("recursive_summary.py with money for the whole book", () => {
  let run: RunAccess;
  let result: Ended;
  let asked: Map<string, number>;
  beforeAll(async () => {
    run = await openRun({ budget: { usd: 2, calls: 200 } });
    result = await summarise(run).ended;
    asked = world.upstream.counters.sends;
  });

  it("summarises it by sub-agents of sub-agents, and its tree of runs adds up to the last call", async () => {
    const { status, printed, complaint } = result;
    expect([status, complaint]).toEqual([0, ""]);
    expect(printed).toMatch(
      /^Summary of opticks\.txt \(565,226 characters\)\n\nNewton tells what light is made of\.\n\n/,
    );

    const tree = await readTree(world, run.id);
    expectBalanced(tree);
    const runs = runsOf(tree);
    expect(Math.max(...runs.map((node) => node.run.depth))).toBe(2);
    expect(tree.run.budget.calls.spent).toBe([...asked.values()].reduce((total, sends) => total + sends, 0));

    const rows = [...printed.matchAll(/^ +(book[.\d]*) +(\d*) +(\d+) +([\d.]+) +(\d+) +([\d.]+) {2}(\w+)$/gm)];
    expect(rows.map(([, name, , , , calls, , status]) => [name, Number(calls), status])).toEqual(
      runs.map((node) => [node.run.name, node.run.budget.calls.spent, node.run.status]),
    );
    expect(rows.reduce((total, [, , , own]) => total + Number(own), 0)).toBe(tree.run.budget.calls.spent);
    const { usd, calls } = tree.run.budget;
    const total = `Spent $${usd.spent.toFixed(6)} for ${calls.spent} calls in all; runs still open: 1, with $0.000000 in flight\n`;
    expect(printed.endsWith(`\n${total}`)).toBe(true);
  });

  it("asks for every paragraph, and leaves each run's last word in its log", async () => {
    const prompts = [...asked.keys()].join("\n");
    const paragraphs = (await readFile(BOOK, "utf8")).split(/\n\n+/).map((paragraph) => paragraph.trim());
    expect(paragraphs.length).toBeGreaterThan(500);
    expect(paragraphs.filter((paragraph) => !prompts.includes(paragraph))).toEqual([]);

    for (const { log } of runsOf(await readTree(world, run.id))) {
      expect(log.filter(({ event_type }) => event_type === "final_result")).toMatchObject([{ output: WHOLE }]);
    }
  });
});

describe.runIf(hasPython)("recursive_summary.py", () => {
  it("prints the same again with the simulated model", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fanout-examples-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "beginning.txt");
    await writeFile(path, (await readFile(BOOK, "utf8")).slice(0, 200_000));
    const again = async () => {
      const run = await openRun({ budget: { usd: 2 }, default_model: "sim/echo" });
      return summarise(run, {}, [path]).ended;
    };
    const first = await again();
    expect(first).toMatchObject({ status: 0, complaint: "" });
    expect(first.printed).toMatch(/\n\nOPTICKS:\n\nOR, A\n\nTREATISE\n/);
    expect(await again()).toEqual(first);
  });

  it.each([1, 0])("asks for the rest itself where it may go no deeper than %i", async (depth) => {
    const run = await openRun({ budget: { usd: 2 }, max_depth: depth });
    const { status, printed, complaint } = await summarise(run).ended;
    expect([status, printed]).toEqual([0, expect.stringContaining(WHOLE)]);
    expect(complaint).toMatch(/^(! book[.\d]+: no child run \(depth_exceeded\), so this run summarises it\n)+$/);
    const tree = await readTree(world, run.id);
    expectBalanced(tree);
    expect(Math.max(...runsOf(tree).map((node) => node.run.depth))).toBe(depth);
  });

  it("summarises what its money pays for, and holds the budget at every look", async () => {
    answer = () => ({ delayMs: 30 });
    const run = await openRun({ budget: { usd: 0.12, calls: 60 } });
    const program = summarise(run);
    const looks: Awaited<ReturnType<typeof look>> = [];
    for (let ended = false; !ended;) {
      looks.push(...(await look(world, run.id)));
      ended = await Promise.race([program.ended.then(() => true), sleep(5, false)]);
    }
    expect(looks.length).toBeGreaterThan(20);
    expect(looks.filter(({ limit, committed, live }) => committed > limit || live > limit)).toEqual([]);
    expect(looks.some(({ live }) => live > 0)).toBe(true);

    const { status, printed, complaint } = await program.ended;
    expect([status, printed]).toEqual([0, expect.stringMatching(/^Summary of opticks\.txt .*\n\n(Light|Newton) /)]);
    expect(complaint).toMatch(/calls failed \(budget_exhausted\)/);
    expect(complaint).toMatch(/! book[.\d]*: \d+ of \d+ pieces are missing; asking for their beginnings\n/);
    const tree = await readTree(world, run.id);
    expectBalanced(tree);
    expect(tree.run.budget.calls.spent).toBe(world.upstream.counters.requests);
  });

  it("says that nothing could be summarised where there is no money at all", async () => {
    const run = await openRun({ budget: { usd: 0 } });
    const { status, printed, complaint } = await summarise(run).ended;
    expect([status, printed]).toEqual([1, ""]);
    expect(complaint).toMatch(/\nbook: nothing could be summarised \(no_summary\)\n$/);
    expect(world.upstream.counters.requests).toBe(0);
    expectBalanced(await readTree(world, run.id));
  });

  it("continues without a sub-agent that was killed, and gets its money back", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    answer = () => ({ after: released });
    const run = await openRun({ budget: { usd: 2 } });
    const program = summarise(run);
    await untilAsked(4, program);
    const [victim] = await processesBelow(program.pid);
    if (victim === undefined) throw new Error("there is no sub-agent to kill");
    process.kill(victim.pid, "SIGKILL");
    release();

    const { status, printed, complaint } = await program.ended;
    expect([status, printed]).toEqual([0, expect.stringContaining(WHOLE)]);
    expect(complaint).toMatch(/! book\.\d: its sub-agent ended with status -9\n! book: 1 of 9 pieces are missing/);
    const tree = await readTree(world, run.id);
    expectBalanced(tree);
    expect(tree.run.budget.usd.reserved).toBe(0);
  });

  it("hands a sub-agent its own token and nothing else, and puts no token on a command line", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    answer = () => ({ after: released });
    const run = await openRun({ budget: { usd: 2 } });
    const program = summarise(run, { SECRET_OF_THE_PARENT: "s3cret" });
    await untilAsked(4, program);
    const [parent, ...agents] = await familyOf(program.pid);
    release();

    expect(parent?.variables.get("FANOUT_TOKEN")).toBe(run.token);
    expect(agents.length).toBeGreaterThanOrEqual(2);
    const tokens = agents.map(({ variables }) => variables.get("FANOUT_TOKEN") ?? "");
    expect(new Set([run.token, ...tokens]).size).toBe(1 + agents.length);
    for (const { variables, commandLine } of agents) {
      expect([...variables.keys()].toSorted()).toEqual(["FANOUT_TOKEN", "FANOUT_URL"]);
      expect(commandLine).toContain("recursive_summary.py");
    }
    const lines = [parent, ...agents].map((each) => each?.commandLine ?? "").join("\n");
    for (const token of [run.token, ...tokens]) expect(lines).not.toContain(token);
    expect((await program.ended).status).toBe(0);
  });
});
