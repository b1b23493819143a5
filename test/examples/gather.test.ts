/** examples/gather.py: single calls that arrive together are one parallel group, and one that fails harms no other. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { logOf } from "../contract/following.ts";
import { documentOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import type { UpstreamAnswer } from "../support/upstream.ts";
import { startProgram } from "./program.ts";

const CALLS = 12;
/** A window that no slow machine misses. */
const WINDOW = { window_ms: 5_000 };

let answer: () => UpstreamAnswer = () => ({});
let world: World;
beforeAll(async () => void (world = await startWorld((call) => ({ text: `About ${call.prompt}`, ...answer() }))));
beforeEach(() => {
  answer = () => ({});
  world.upstream.forget();
});
afterAll(() => world.stop());

const gather = (run: RunAccess, env: Record<string, string> = {}) =>
  startProgram("python3", ["examples/gather.py"], { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, ...env })
    .ended;
const groupsOf = async (run: RunAccess) =>
  (await logOf(run)).filter(({ event_type }) => event_type === "group_completed");
const answersIn = (printed: string) => [...printed.matchAll(/^ {2}(\w+) +(In one sentence|About|!) ?(.*)$/gm)];

describe.runIf(hasPython)("gather.py", () => {
  it("is one group for the gathered calls and one for the batch, with eight calls at once in each", async () => {
    const run = await world.openRun({ ...WINDOW, max_parallel: 8, budget: { usd: 1 } });
    const { status, printed, complaint } = await gather(run);
    expect([status, complaint]).toEqual([0, ""]);
    const groups = await groupsOf(run);
    expect(groups).toMatchObject([
      { count: CALLS, completed: CALLS - 1, failed: 1, peak_parallel: 8 },
      { count: CALLS, completed: CALLS - 1, failed: 1, peak_parallel: 8 },
    ]);
    const shown = [
      ...printed.matchAll(/^ {2}(pg-\S+): 12 calls in .* \((\d+\.\d)x, 8 at once\), 1 failed, \$0\.\d{6}$/gm),
    ];
    expect(shown.map(([, id]) => id)).toEqual(groups.map((group) => group.parallel_group_id));
    const { spent } = (await documentOf(run)).budget.usd;
    expect(printed.endsWith(`\nSpent $${spent.toFixed(6)} in all\n`)).toBe(true);
  });

  it("gives each question its own answer, and the failed one its error", async () => {
    const { printed } = await gather(await world.openRun(WINDOW));
    const rows = answersIn(printed);
    expect(rows).toHaveLength(CALLS);
    for (const [, metal, kind, rest] of rows) {
      const expected =
        metal === "lead" ? ["!", /^upstream_error: .* 400/] : ["In one sentence", `: what is ${metal} used for?`];
      expect([kind, rest]).toEqual([expected[0], expect.stringMatching(expected[1] ?? "")]);
    }
    expect(printed).toContain("\n  11 of 12 answered\n");
  });

  it("has all its calls upstream at once", async () => {
    let inFlight = 0;
    let meet: () => void = () => undefined;
    let met = new Promise<void>((resolve) => (meet = resolve));
    answer = () => {
      const own = met;
      inFlight += 1;
      if (inFlight === CALLS - 1) {
        meet();
        inFlight = 0;
        met = new Promise<void>((resolve) => (meet = resolve));
      }
      return { after: own };
    };
    const run = await world.openRun({ ...WINDOW, max_parallel: CALLS });
    const { status, printed } = await gather(run, { FANOUT_MODEL: "up-1" });
    expect([status, world.upstream.counters.requests]).toEqual([0, 2 * (CALLS - 1)]);
    expect(answersIn(printed).filter(([, , kind]) => kind === "About")).toHaveLength(CALLS - 1);
  });

  it("reports which calls the budget did not pay for, and answers the others", async () => {
    const run = await world.openRun({ ...WINDOW, budget: { calls: 5 } });
    const { status, printed } = await gather(run, { FANOUT_MODEL: "up-1" });
    expect(status).toBe(0);
    const rows = answersIn(printed);
    // The one that is made to fail is the fourth: its upstream answered it, so it is a call, too.
    expect(rows.filter(([, , kind]) => kind === "About")).toHaveLength(5 - 1);
    expect(rows.filter(([, , , rest]) => rest?.startsWith("budget_exhausted: "))).toHaveLength(CALLS - 5);
    expect(world.upstream.counters.requests).toBe(5 - 1);
  });

  it("ends with one line where there is no token", async () => {
    const { status, printed, complaint } = await gather({ ...(await world.openRun()), token: "" });
    expect([status, printed]).toEqual([1, ""]);
    expect(complaint).toMatch(/^FANOUT_TOKEN is not set.* \(no_token\)\n$/);
  });
});
