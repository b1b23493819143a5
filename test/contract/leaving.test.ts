/**
 * Clients that disconnect: a running batch continues, unless it was opened with detach: false; single calls take no permits of
 * their run along.
 */
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

  it("ends its group with detach: false, and the upstream's connections with it", { tags: ["slow"] }, async () => {
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

  it(
    "lets short calls in flight end with detach: false, since an abort would be charged their reservations",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
      const prompts = Array.from({ length: 20 }, (_, index) => `{{delay/1500}} ${index}`);
      const json = { prompts, concurrency: 6, detach: false };
      const client = clientOf(world, "/batch", { token: run.token, json, headers: { accept } });
      await expect.poll(() => world.upstream.counters.inFlight).toBe(6);
      client.leave();
      const group = groupOf(await endOf(run, await groupOfRun(run)));
      const ended = group.items.map(({ status }) => status);
      expect(ended).toEqual(prompts.map((_, index) => (index < 6 ? "completed" : "cancelled")));
      expect(world.upstream.counters).toMatchObject({ requests: 6, abandoned: 0 });
      const { budget } = await documentOf(run);
      expect(group.items.some((item) => item["estimated"] === true)).toBe(false);
      expect([budget.usd.reserved, budget.usd.spent]).toEqual([0, group.usage.cost]);
    },
  );

  it("with detach: false gets every result if it stays", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const json = { prompts: ["{{delay/100}} a", "b"], detach: false };
    const answer = await run.send("/batch", { json, headers: { accept } });
    expect(answer.text).toContain("{{delay/100}} a");
    expect(groupOf(await run.send(await groupOfRun(run))).status).toBe("completed");
  });
});

const chat = (more: object) => (content: string) => ({ ...more, messages: [{ role: "user", content }] });
const SINGLE_CALLS: [string, (prompt: string) => object][] = [
  ["/query", (prompt) => ({ prompt })],
  ["/llm_query", (prompt) => ({ prompt })],
  ["/v1/chat/completions", chat({})],
  ["/v1/chat/completions", chat({ stream: true })],
];

describe.each([{}, { replay: "run" }])("clients that all disconnect, in a run with %o,", (settings) => {
  it.each(SINGLE_CALLS)("leave every permit of %s to the next calls", async (path, bodyOf) => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 4, ...settings });
    const clients = Array.from({ length: 40 }, (_, at) =>
      clientOf(world, path, { token: run.token, json: bodyOf(`{{fault/hang}} ${at}`) }),
    );
    await expect.poll(() => world.upstream.counters.inFlight).toBe(4);
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(40);
    for (const client of clients) client.leave();
    const next = await Promise.all(["a", "b", "c", "d"].map((prompt) => run.send(path, { json: bodyOf(prompt) })));
    expect(next.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await expect
      .poll(async () => {
        const { budget, stats } = await documentOf(run);
        return [budget.calls.reserved, budget.usd.reserved, stats.pending_queries];
      })
      .toEqual([0, 0, 0]);
  });
});
