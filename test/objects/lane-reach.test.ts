/** Lanes and runs that cannot reach each other for a while. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { expectAtRest, untilClosed } from "../support/objects-group.ts";
import { openUnwatched } from "../support/objects-direct.ts";
import { expectSettled, openLatch, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";
import { LaneDuty } from "../../durable-objects/lane/duty.ts";
import { LaneObject, RunObject } from "../../src/index.ts";

const plainClaim = RunObject.prototype.settleAndClaim;
const plainStart = LaneObject.prototype.start;
const plainClose = LaneDuty.prototype.close;

afterEach(() => {
  RunObject.prototype.settleAndClaim = plainClaim;
  LaneObject.prototype.start = plainStart;
  LaneDuty.prototype.close = plainClose;
});

describe("a lane with paid answers", () => {
  it(
    "delivers them even if its run is unreachable for longer than a lane without answers would retry",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
      let failuresLeft = 7;
      RunObject.prototype.settleAndClaim = function (this: RunObject, ...args: Parameters<typeof plainClaim>) {
        if (args[1].length > 0 && failuresLeft > 0) {
          failuresLeft -= 1;
          return Promise.reject(new Error("the test keeps the run out of reach"));
        }
        return plainClaim.apply(this, args);
      };
      const answer = await run.batch({ prompts: prompts(4), model: "up/key/out-of-reach", max_tokens: 50 });
      expect(failuresLeft).toBe(0);
      expect(answer.results).toEqual(prompts(4));
      expect(answer.items.filter(({ attempts, estimated }) => attempts > 1 || estimated)).toEqual([]);
      expect((await upstreamStats("out-of-reach")).requests).toBe(4);
      expectSettled(await run.budget(), answer.usage.cost);
    },
  );
});

describe("a lane that cannot be started", () => {
  it("prevents neither other lanes from starting nor the run's next alarm", async () => {
    const run = await openRun({ max_parallel: 12 });
    let isOut = true;
    LaneObject.prototype.start = function (this: LaneObject, runId: string, lane: number): void {
      if (isOut && runId === run.id && lane === 0) throw new Error("the test keeps this lane out of reach");
      plainStart.call(this, runId, lane);
    };
    expect(await openUnwatched(run, prompts(12), "up/barrier/6/within/15000/key/one-lane-out")).toEqual([0]);
    // A lane that has found headers to come late: now two are needed, and the run's alarm starts them.
    await run.object.settleAndClaim(0, [], 0, false, null, 6);
    await runDurableObjectAlarm(run.object);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.completed).toBe(12);
    // The barrier needs the six slots of one lane: lane 1 made all of them, six at a time.
    isOut = false;
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect((await upstreamStats("one-lane-out")).requests).toBe(12);
  });
});

describe("slots that become ready while all lanes with calls wait for headers", () => {
  it("are made by lanes that had ended before, for nothing else was ready", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 12 });
    let lanesEnded = 0;
    LaneDuty.prototype.close = function (this: LaneDuty): void {
      lanesEnded += 1;
      plainClose.call(this);
    };
    const tasksOf = (count: number, name: string, prompt: string, latch: string): object[] =>
      prompts(count, name).map((id) => ({
        id: id.replace(" ", "-"),
        prompt,
        model: `up/key/ready-later/latch/${latch}`,
      }));
    const tasks = [
      ...tasksOf(1, "first", "first", "ready-first"),
      ...tasksOf(5, "held", "held", "never"),
      ...tasksOf(2, "soon", "soon", "ready-soon"),
      ...tasksOf(6, "after", "{{first-0.output}}", "never"),
    ];
    const opened = await run.post("/dag", { tasks }, { headers: { prefer: "respond-async" } });
    expect([opened.status, await opened.text()]).toEqual([202, expect.any(String)]);
    await untilInFlight("ready-later", 8);
    await openLatch("ready-soon");
    await untilInFlight("ready-later", 6);
    await expect.poll(() => lanesEnded).toBe(1);
    await openLatch("ready-first");
    await untilInFlight("ready-later", 11);
    expect((await run.send("DELETE", `/runs/${run.id}`)).status).toBe(200);
    // What objects still did when the file ends would fail the whole run of the tests.
    await untilClosed("ready-later", 11);
    await expectAtRest(run);
    await expect.poll(() => lanesEnded).toBeGreaterThanOrEqual(3);
  });
});
