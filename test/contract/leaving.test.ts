/** A client that disconnects from a running batch: the group continues, unless it was opened with detach: false. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";
import { endOf, logOf } from "./following.ts";
import { documentOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const KINDS = ["application/json", "application/x-ndjson", "text/event-stream"];

/** The place of the only group that a run has opened: a JSON answer tells it only at its end, the log at once. */
async function groupOfRun(run: RunAccess): Promise<string> {
  const lines = await logOf(run);
  const [started, ...more] = lines.filter(({ event_type }) => event_type === "group_started");
  expect(more).toEqual([]);
  return `/groups/${started?.parallel_group_id ?? ""}`;
}

describe.each(KINDS)("a client that disconnects from a batch answered as %s", (accept) => {
  it("does not end its group, which continues and whose results can be fetched", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const latch = `left-${accept.replaceAll("/", "-")}`;
    const prompts = Array.from({ length: 40 }, (_, index) =>
      index < 4 ? `quick ${index}` : `{{latch/${latch}}} ${index}`,
    );
    const client = clientOf(world, "/batch", {
      token: run.token,
      json: { prompts, concurrency: 8 },
      headers: { accept },
    });
    await expect.poll(() => world.upstream.counters.requests).toBe(12);
    client.leave();
    await client.ended;
    expect(world.upstream.counters.requests).toBe(12);
    world.upstream.open(latch);
    const group = groupOf(await endOf(run, await groupOfRun(run)));
    expect([group.status, group.results]).toEqual(["completed", prompts]);
    expect(world.upstream.counters).toMatchObject({ requests: 40, abandoned: 0 });
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 40, reserved: 0 });
  });

  it("ends its group with detach: false, and the upstream's connections with it", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const prompts = Array.from({ length: 20 }, (_, index) =>
      index < 2 ? `quick ${index}` : `{{fault/hang}} ${index}`,
    );
    const json = { prompts, concurrency: 6, detach: false };
    const client = clientOf(world, "/batch", { token: run.token, json, headers: { accept } });
    await expect.poll(() => world.upstream.counters).toMatchObject({ requests: 8, inFlight: 6 });
    client.leave();
    await expect.poll(() => world.upstream.counters.abandoned).toBe(6);
    const group = groupOf(await endOf(run, await groupOfRun(run)));
    expect(group.status).toBe("cancelled");
    expect(group.results.slice(0, 2)).toEqual(["quick 0", "quick 1"]);
    expect(group.items.slice(2).map(({ status }) => status)).toEqual(Array.from({ length: 18 }, () => "cancelled"));
    expect(group.errors.slice(2).every((error) => error?.code === "cancelled")).toBe(true);
    expect(world.upstream.counters.requests).toBe(8);
    const { budget } = await documentOf(run);
    expect([budget.usd.reserved, budget.calls.reserved, budget.calls.spent]).toEqual([0, 0, 8]);
  });

  it("with detach: false gets every result if it stays", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const json = { prompts: ["{{delay/100}} a", "b"], detach: false };
    const answer = await run.send("/batch", { json, headers: { accept } });
    expect(answer.text).toContain("{{delay/100}} a");
    expect(groupOf(await run.send(await groupOfRun(run))).status).toBe("completed");
  });
});
