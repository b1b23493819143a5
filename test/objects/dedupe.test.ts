/** Equal calls in flight within a run are sent once, whichever API family they use. */
import { describe, expect, it } from "vitest";
import { evict } from "../support/objects-direct.ts";
import { cancel, expectAtRest, keyed, openAsync } from "../support/objects-group.ts";
import { openLatch, openRun, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("equal calls in flight with dedupe", () => {
  it("of one batch are sent once, and each slot gets the answer", async () => {
    const run = await openRun({ max_parallel: 8 });
    const prompts = ["a", "b", "a", "a", "b", "c"];
    const answer = await run.batch({ prompts, model: "up/key/one-batch/barrier/3/within/15000", dedupe: true });
    expect(answer.results).toEqual(prompts);
    expect((await upstreamStats("one-batch")).sends).toEqual({ a: 1, b: 1, c: 1 });
    expect(answer.usage.total_tokens).toBe(sum(answer.items.map(({ usage }) => usage?.total_tokens ?? 0)));
    expect((await run.budget()).calls.spent).toBe(3);
    await expectAtRest(run);
  });

  it("of one batch are sent once however narrow the run is, and the others cost no attempt", async () => {
    const run = await openRun({ max_parallel: 1 });
    const written = async (): Promise<number> => (await run.object.rowsWritten()).all;
    const before = await written();
    const [distinct, copies] = [10, 4];
    // Each copy comes when the call that it is equal to has long been answered.
    const prompts = Array.from({ length: distinct * copies }, (_, at) => `p${at % distinct}`);
    const answer = await run.batch({ prompts, model: "up/key/narrow", dedupe: true });
    expect(answer.results).toEqual(prompts);
    expect((await upstreamStats("narrow")).requests).toBe(distinct);
    expect((await run.budget()).calls.spent).toBe(distinct);
    // A slot is a row, and an attempt two or three more.
    expect((await written()) - before).toBeLessThanOrEqual(2 * prompts.length);
    await expectAtRest(run);
  });

  it("are sent once if the run's object sleeps meanwhile: the next instance knows what is in flight", async () => {
    // Coalescing windows are in memory only, and so is what ends their groups.
    const run = await openRun({ max_parallel: 8, window_ms: 0 });
    const shared = { prompt: "a", model: "up/key/slept-on/latch/slept-on", dedupe: true };
    const leader = run.query(shared);
    await untilInFlight("slept-on", 1);
    const follower = run.query(shared);
    // It waits at a socket by then.
    await expect.poll(() => watched(run.id).calls["fetch"] ?? 0).toBeGreaterThanOrEqual(1);
    const requests = watched(run.id).calls["acquire"] ?? 0;
    await evict(run.object);
    // The next instance lets those who wait repeat their requests.
    await run.document();
    await expect.poll(() => watched(run.id).calls["acquire"]).toBe(requests + 1);
    await openLatch("slept-on");
    expect([(await leader).text, (await follower).text]).toEqual(["a", "a"]);
    expect((await upstreamStats("slept-on")).sends).toEqual({ a: 1 });
    await expectAtRest(run);
  });

  it("of two batches, a query and a stored query are sent once", async () => {
    const run = await openRun({ max_parallel: 8 });
    const shared = { model: "up/key/all-doors/latch/all-doors", dedupe: true };
    const first = run.batch({ prompts: ["a"], ...shared });
    await untilInFlight("all-doors", 1);
    const others = Promise.all([
      run.batch({ prompts: ["a", "a"], ...shared }),
      run.query({ prompt: "a", ...shared }),
      keyed(run, "key", "/query", { prompt: "a", ...shared }),
    ]);
    await untilCalled(run, { openGroup: 3, acquire: 1 });
    await openLatch("all-doors");
    const [second, query, stored] = await others;
    expect((await first).results).toEqual(["a"]);
    expect(second.results).toEqual(["a", "a"]);
    expect(query).toMatchObject({ text: "a", attempts: 0, usage: { cost: 0 } });
    expect(stored).toMatchObject({ status: 200, json: { text: "a", attempts: 0 } });
    expect((await upstreamStats("all-doors")).sends).toEqual({ a: 1 });
    expect((await run.budget()).calls.spent).toBe(1);
  });

  it("with a query as leader are sent once too: its text is returned to all followers", async () => {
    const run = await openRun({ max_parallel: 8 });
    const shared = { model: "up/key/led-by-query/latch/led-by-query", dedupe: true };
    const query = run.query({ prompt: "a", ...shared });
    await untilInFlight("led-by-query", 1);
    const others = Promise.all([run.batch({ prompts: ["a"], ...shared }), run.query({ prompt: "a", ...shared })]);
    // The follower is queued, so it requests its permit once more, and waits.
    await untilCalled(run, { openGroup: 1, acquire: 1 });
    await openLatch("led-by-query");
    const [batch, other] = await others;
    expect([(await query).text, batch.results[0], other.text]).toEqual(["a", "a", "a"]);
    expect((await upstreamStats("led-by-query")).requests).toBe(1);
    await expectAtRest(run);
  });

  it("take one permit: followers do not delay other calls", async () => {
    const run = await openRun({ max_parallel: 2 });
    const prompts = ["a", "a", "a", "a", "b"];
    const answer = await run.batch({ prompts, model: "up/key/permits/barrier/2/within/15000", dedupe: true });
    expect(answer.results).toEqual(prompts);
  });

  it("share a failure like an answer", async () => {
    const run = await openRun();
    const model = "up/key/shared-failure/delay/50/status/400";
    const answer = await run.batch({ prompts: ["a", "a"], model, dedupe: true });
    expect(answer.errors.map((error) => error?.code)).toEqual(["upstream_error", "upstream_error"]);
    expect((await upstreamStats("shared-failure")).requests).toBe(1);
  });

  it.each([
    { differ: "in the prompt", one: { prompt: "a" }, other: { prompt: "b" } },
    { differ: "in the model", one: { model: "up/key/K" }, other: { model: "dear/key/K" } },
    { differ: "in the completion cap", one: { max_tokens: 10 }, other: { max_tokens: 11 } },
    { differ: "in the temperature", one: { temperature: 0 }, other: { temperature: 1 } },
    { differ: "in a parameter", one: { params: { seed: 1 } }, other: { params: { seed: 2 } } },
    { differ: "in the system prompt", one: { system: "s" }, other: { system: "t" } },
    { differ: "in whether they may be shared", one: { dedupe: true }, other: { dedupe: false } },
  ])("are separate calls if they differ $differ", async ({ differ, one, other }) => {
    const run = await openRun({ max_parallel: 8 });
    const key = differ.replaceAll(" ", "-");
    const asked = (own: Record<string, unknown>) => {
      const model = typeof own["model"] === "string" ? own["model"].replace("K", key) : `up/key/${key}`;
      return { prompt: "p", dedupe: true, ...own, model: `${model}/latch/${key}` };
    };
    const first = run.query(asked(one));
    await untilPending(run, 1);
    const second = run.query(asked(other));
    await untilPending(run, 2);
    for (const host of ["upstream.test", "dear.test"]) await openLatch(key, host);
    await Promise.all([first, second]);
    expect((await run.budget()).calls.spent).toBe(2);
  });

  it("are shared while they are in flight, and not afterwards", async () => {
    const run = await openRun();
    const body = { prompt: "a", model: "up/key/afterwards", dedupe: true };
    await run.query(body);
    await run.query(body);
    expect((await upstreamStats("afterwards")).requests).toBe(2);
  });

  it("are not shared between runs", async () => {
    const body = { prompt: "a", model: "up/key/runs-apart/barrier/2/within/15000", dedupe: true };
    const answers = await Promise.all([(await openRun()).query(body), (await openRun()).query(body)]);
    expect(answers.map(({ text }) => text)).toEqual(["a", "a"]);
  });

  it("continue if the group of the leader is cancelled: a follower is sent", async () => {
    const run = await openRun({ max_parallel: 4 });
    const shared = { model: "up/key/leader-cancelled/latch/leader-cancelled", dedupe: true };
    const leader = await openAsync(run, { prompts: ["a"], ...shared });
    await untilInFlight("leader-cancelled", 1);
    const others = Promise.all([run.batch({ prompts: ["a", "a"], ...shared }), run.query({ prompt: "a", ...shared })]);
    await untilCalled(run, { openGroup: 2, acquire: 1 });
    await cancel(run, leader);
    await openLatch("leader-cancelled");
    const [batch, query] = await others;
    expect([...batch.results, query.text]).toEqual(["a", "a", "a"]);
    expect((await upstreamStats("leader-cancelled")).requests).toBe(2);
    await expectAtRest(run);
  });
});

/** Waits until the run's object has been called that often and has seen to all of it. */
async function untilCalled(
  run: TestRun,
  { openGroup, acquire }: Record<"openGroup" | "acquire", number>,
): Promise<void> {
  const callsOf = (method: string): number => watched(run.id).calls[method] ?? 0;
  // A permit that is long in coming is requested again.
  await expect.poll(() => callsOf("openGroup") >= openGroup && callsOf("acquire") >= acquire).toBe(true);
  // Its turns are in the order of the calls: it replies after what has arrived before.
  await run.object.acquireMany([], []);
}

async function untilPending(run: TestRun, count: number): Promise<void> {
  await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(count);
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
