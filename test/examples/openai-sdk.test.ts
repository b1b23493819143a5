/** examples/openai_sdk.mjs: OpenAI's own package under a run's budget, by two variables. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { logOf } from "../contract/following.ts";
import { documentOf, startWorld, type RunAccess, type RunDocument, type World } from "../contract/world.ts";
import { startProgram } from "./program.ts";

const AT_ONCE = 20;

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const program = (run: RunAccess) =>
  startProgram(process.execPath, ["examples/openai_sdk.mjs"], {
    OPENAI_BASE_URL: `${world.gateway.url}/v1`,
    OPENAI_API_KEY: run.token,
  }).ended;

/** The run once nothing of it is set aside: the last answers are charged just after they were read. */
async function settled(run: RunAccess): Promise<RunDocument> {
  for (;;) {
    const document = await documentOf(run);
    if (document.budget.usd.reserved === 0) return document;
  }
}

describe("openai_sdk.mjs", () => {
  it("gets an answer, a stream and twenty answers at once, as one parallel group, and knows what the run was charged", async () => {
    const run = await world.openRun({ window_ms: 5_000, max_parallel: 8, budget: { usd: 0.1 } });
    const { status, printed, complaint } = await program(run);
    expect([status, complaint]).toEqual([0, ""]);
    const [one, stream, many, spent, ...rest] = printed.split("\n");
    expect(one).toBe("One answer:    Name a colour of the rainbow.");
    expect(stream).toMatch(/^A stream: {6}\d pieces: Name\| the\| colours\|/);
    expect(many).toMatch(/^20 at once: {4}20 answered in \d+\.\d\ds, the last: What is 19 times 19\?$/);
    expect(rest).toEqual([""]);

    const { budget, stats } = await settled(run);
    expect(budget.calls.spent).toBe(2 + AT_ONCE);
    expect(stats.total_queries).toBe(2 + AT_ONCE);
    await run.send(`/runs/${run.id}/flush`, { method: "POST" });
    const groups = (await logOf(run)).filter(({ event_type }) => event_type === "group_completed");
    expect(groups).toMatchObject([{ count: 2 + AT_ONCE, failed: 0, peak_parallel: 8 }]);
    expect(spent).toBe(`Spent:         $${budget.usd.spent.toFixed(6)}`);
  });

  it("continues with what it has when the money ends, and stays within it", async () => {
    const run = await world.openRun({ budget: { calls: 9 } });
    const { status, printed, complaint } = await program(run);
    expect([status, complaint]).toEqual([0, ""]);
    expect(printed).toMatch(/^20 at once: {4}7 answered in /m);
    expect(printed).toMatch(/^402: {11}13 not sent: the run's budget is spent$/m);
    expect((await settled(run)).budget.calls).toMatchObject({ limit: 9, spent: 9, remaining: 0 });
  });

  it("ends with the gateway's words where there is no money for the first call", async () => {
    const run = await world.openRun({ budget: { usd: 0 } });
    const { status, printed, complaint } = await program(run);
    expect([status, printed]).toEqual([1, ""]);
    expect(complaint).toMatch(/^402 Budget exceeded: .*\n$/);
  });
});
