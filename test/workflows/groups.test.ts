/**
 * Groups without a client where Workflows are bound: Miniflare's simulation of them executes each group in an instance, with the
 * limit of six fetches that wait for headers. Without the binding lanes do, as all tests in test/objects show.
 */
import { env, exports } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { LaneObject, RunObject } from "../../src/index.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { crash } from "../support/objects-direct.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";

const plainStart = LaneObject.prototype.start;
const plainClaim = RunObject.prototype.settleAndClaim;
afterEach(() => {
  LaneObject.prototype.start = plainStart;
  RunObject.prototype.settleAndClaim = plainClaim;
});

/** The lanes that are started from now on. */
function watchLanes(): number[] {
  const started: number[] = [];
  LaneObject.prototype.start = function (this: LaneObject, ...args: Parameters<typeof plainStart>) {
    started.push(args[1]);
    plainStart.apply(this, args);
  };
  return started;
}

const accepted = z.looseObject({ id: z.string() });

async function postAsync(run: TestRun, body: unknown): Promise<void> {
  const response = await run.post("/batch", body, { headers: { prefer: "respond-async" } });
  expect(response.status).toBe(202);
  accepted.parse(await response.json());
}

const statusOf = async (run: TestRun, seq: number) => (await run.object.waitGroup(seq, 0))?.status;
const instanceOf = async (run: TestRun, seq: number) => (await env.WORKFLOW.get(`${run.id}-${seq}`)).status();

describe("a group without a client", () => {
  it("is executed by a Workflow instance, which ends with it, and by no lane", async () => {
    const lanes = watchLanes();
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    await postAsync(run, { prompts: prompts(40), model: "up/key/workflow/delay/5" });
    await expect.poll(() => statusOf(run, 1)).toBe("completed");
    const slots = await run.object.results(1, 0);
    expect(slots.map(({ text }) => text)).toEqual(prompts(40));
    expect((await upstreamStats("workflow")).requests).toBe(40);
    await expect.poll(async () => (await instanceOf(run, 1)).status).toBe("complete");
    expect(lanes).toEqual([]);
    const { calls } = await run.budget();
    expect([calls.reserved, calls.spent]).toEqual([0, 40]);
  });

  it("is joined by lanes where six headers at a time are too few", { tags: ["slow"] }, async () => {
    const lanes = watchLanes();
    const run = await openRun({ max_parallel: 12 });
    await postAsync(run, { prompts: prompts(12), model: "up/key/workflow-wide/barrier/12/within/20000" });
    await expect.poll(() => statusOf(run, 1)).toBe("completed");
    expect(lanes.length).toBeGreaterThan(0);
    expect((await upstreamStats("workflow-wide")).requests).toBe(12);
  });

  it("is executed once although its run restarts in the middle", async () => {
    const run = await openRun({ max_parallel: 6 });
    await postAsync(run, { prompts: prompts(12), model: "up/latch/workflow-restart/key/workflow-restart" });
    await untilInFlight("workflow-restart", 6);
    await crash(run.object);
    await openLatch("workflow-restart");
    await expect.poll(() => statusOf(run, 1)).toBe("completed");
    expect((await run.object.results(1, 0)).map(({ attempts }) => attempts)).toEqual(Array<number>(12).fill(1));
    expect((await upstreamStats("workflow-restart")).requests).toBe(12);
  });
});

describe("an instance that runs again, after the loss of the machine that ran it", () => {
  it("gives up what it had in flight at once, and executes its group to the end", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    await postAsync(run, { prompts: prompts(12), model: "up/latch/workflow-again/key/workflow-again" });
    await untilInFlight("workflow-again", 6);
    await (await env.WORKFLOW.get(`${run.id}-1`)).restart();
    // Leases that nobody gives up last for half a minute.
    await expect.poll(async () => (await upstreamStats("workflow-again")).requests, { timeout: 5_000 }).toBe(12);
    await openLatch("workflow-again");
    await expect.poll(() => statusOf(run, 1)).toBe("completed");
    expect((await run.object.results(1, 0)).map(({ text }) => text)).toEqual(prompts(12));
    const { calls } = await run.budget();
    expect([calls.reserved, calls.spent]).toEqual([0, (await upstreamStats("workflow-again")).requests]);
  });
});

describe("the chunks of a batch of the Batch API", () => {
  it("are executed by Workflow instances", async () => {
    const lanes = watchLanes();
    const run = await openRun({ max_parallel: 6 });
    const lines = prompts(9).map((prompt, at) =>
      JSON.stringify({
        custom_id: `line-${at}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model: "up/key/workflow-lines", messages: [{ role: "user", content: prompt }] },
      }),
    );
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new File([lines.join("\n")], "x.jsonl"));
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, "x-fanout-run": run.id };
    const file = await exports.default.fetch("http://fanout.test/v1/files", { method: "POST", headers, body: form });
    const { id } = accepted.parse(await file.json());
    const request = { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const batch = accepted.parse(await (await run.post("/v1/batches", request)).json());
    const batchStatus = z.looseObject({ status: z.string() });
    const read = async () => batchStatus.parse(await (await run.send("GET", `/v1/batches/${batch.id}`)).json()).status;
    await expect.poll(read).toBe("completed");
    expect((await upstreamStats("workflow-lines")).requests).toBe(9);
    await expect.poll(async () => (await instanceOf(run, 1)).status).toBe("complete");
    expect(lanes).toEqual([]);
  });
});
