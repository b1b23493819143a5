/** Large groups arrive in pieces. What is never opened, or refused, stays nowhere. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { GROUP_CHARS_MAX, RUN_STORED_BYTES_MAX, STAGED_KEPT_MS } from "../../src/limits.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, evict, openingOf, pagesOf } from "../support/objects-direct.ts";
import { alarmOf, keyed, rowCounts } from "../support/objects-group.ts";
import { openLatch, openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const ASYNC = { prefer: "respond-async" };

describe("pages of a group that is never opened", () => {
  it.each(["the instance that took them", "the next one"])("are dropped when they expire by %s", async (who) => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const { pages } = pagesOf(["staged"], "up/key/abandoned");
    expect(await run.object.stagePages("abandoned", pages)).toBeNull();
    if (who === "the next one") await evict(run.object);
    skipTime(STAGED_KEPT_MS - 1_000);
    await runDurableObjectAlarm(run.object);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
    // Its own alarm comes for it.
    expect(await alarmOf(run)).toBeLessThanOrEqual(Date.now() + 1_000);
    skipTime(1_000);
    await runDurableObjectAlarm(run.object);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    expect((await upstreamStats("abandoned")).requests).toBe(0);
  });

  it("can still be opened until then, and are never dropped once they are", async () => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const first = pagesOf(["first"], "up/key/late");
    await run.object.stagePages("late", first.pages);
    skipTime(STAGED_KEPT_MS - 1_000);
    const opened = await run.object.openGroup({ ...openingOf(1, first.models), openKey: "late" }, []);
    expect(opened.ok).toBe(true);
    skipTime(1_000);
    await runDurableObjectAlarm(run.object);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });

  it("are missed by a group that is opened too late: it is refused, and nothing of it is stored", async () => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const { pages, models } = pagesOf(["first"], "up/key/too-late");
    await run.object.stagePages("late", pages);
    skipTime(STAGED_KEPT_MS);
    await runDurableObjectAlarm(run.object);
    const last = pages.map((page) => ({ ...page, firstIndex: 1 }));
    for (const rest of [last, []]) {
      const opened = await run.object.openGroup({ ...openingOf(2, models), openKey: "late" }, rest);
      expect(opened).toMatchObject({ ok: false, reason: { reason: "overloaded" } });
    }
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    expect((await upstreamStats("too-late")).requests).toBe(0);
  });

  it("that are sent once more after a lost reply are stored once", async () => {
    const run = await openRun();
    const { pages } = pagesOf(["staged"], "up/key/staged-twice");
    await run.object.stagePages("twice", pages);
    await run.object.stagePages("twice", pages);
    await evict(run.object);
    await run.object.stagePages("twice", pages);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });
});

/** What the run's object stores, bytes. */
const storedBytes = (run: TestRun): Promise<number> =>
  runInDurableObject(run.object, (_, state) => state.storage.sql.databaseSize);

/** Pages of so many bytes, as a Worker sends them ahead. */
function largePages(count: number, chars: number, model: string) {
  return pagesOf(
    Array.from({ length: count }, () => "x".repeat(chars)),
    model,
  ).pages;
}

describe("the bytes of pages that are never opened", () => {
  it.each([
    ["lives on", async () => {}],
    ["crashed right after it took them", (run: TestRun) => crash(run.object)],
    ["was evicted", (run: TestRun) => evict(run.object)],
  ])("are released by the alarm if the object %s", async (_, happens) => {
    const run = await openRun({ expires_in_s: 86_400 * 7 });
    const before = await storedBytes(run);
    for (let part = 0; part < 8; part++) await run.object.stagePages(`part-${part}`, largePages(4, 200_000, "up/echo"));
    await happens(run);
    // The alarm is stored with the pages: no instance that lives on is needed for it.
    expect(await alarmOf(run)).toBeLessThanOrEqual(Date.now() + STAGED_KEPT_MS);
    expect(await storedBytes(run)).toBeGreaterThan(before + 1_500_000);
    skipTime(STAGED_KEPT_MS);
    await runDurableObjectAlarm(run.object);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    expect(await storedBytes(run)).toBeLessThan(before + 100_000);
  });

  it("are released at once if the pages are dropped, and a second drop changes nothing", async () => {
    const run = await openRun();
    const before = await storedBytes(run);
    await run.object.stagePages("key", largePages(10, 200_000, "up/echo"));
    for (const key of ["key", "key", "never staged"]) expect(await run.object.dropStaged(key)).toBe(true);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    expect(await storedBytes(run)).toBeLessThan(before + 100_000);
  });

  it("are released if the run has ended meanwhile, whichever call detects that", async () => {
    for (const who of ["more pages", "the opening"]) {
      const run = await openRun();
      const { pages, models } = pagesOf(["staged"], "up/key/ended");
      await run.object.stagePages("key", pages);
      await run.object.endAndWait("closed", null);
      const refused =
        who === "more pages"
          ? await run.object.stagePages("key", pages)
          : await run.object.openGroup({ ...openingOf(1, models), openKey: "key" }, []);
      expect(refused).toMatchObject({ ok: false, reason: { reason: "invalid_api_key" } });
      expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0 });
    }
  });

  it("are not counted by a run that was never opened", async () => {
    const never = env.RUN.getByName("run_never");
    expect(await never.stagePages("key", largePages(1, 10, "up/echo"))).toMatchObject({ ok: false });
    await never.dropStaged("key");
    expect(await runInDurableObject(never, (_, state) => state.storage.getAlarm())).toBeNull();
  });
});

describe("pages of a group that is open", () => {
  it("stay, whatever is sent for them afterwards", async () => {
    const run = await openRun();
    const { pages, models } = pagesOf(["kept"], "up/key/kept");
    await run.object.stagePages("key", pages);
    expect(await run.object.openGroup({ ...openingOf(1, models), openKey: "key" }, [])).toMatchObject({ ok: true });
    // A copy of an earlier call that was on its way for long.
    expect(await run.object.stagePages("key", pages)).toBeNull();
    expect(await run.object.dropStaged("key")).toBe(false);
    skipTime(STAGED_KEPT_MS);
    await runDurableObjectAlarm(run.object);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });
});

/** Counts writes to R2 until the test ends. Tests and objects share one isolate, and so its prototypes. */
function countedWrites(): { count: number } {
  const counted = { count: 0 };
  const prototype: { put: (this: R2Bucket, ...args: unknown[]) => Promise<unknown> } = Object.getPrototypeOf(env.FILES);
  const plain = prototype.put;
  prototype.put = function (...args) {
    counted.count += 1;
    return plain.apply(this, args);
  };
  onTestFinished(() => void (prototype.put = plain));
  return counted;
}

describe("a large batch that is refused", () => {
  it(
    "leaves nothing stored, whether it can never fit its budget or is too large",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ budget: { usd: 0.01 } });
      const before = await storedBytes(run);
      const large = { prompts: prompts(40).map((prompt) => prompt.padEnd(60_000, ".")), model: "up/echo" };
      const keyed = { headers: { "idempotency-key": "key" } };
      const infeasible = await run.post("/batch", { ...large, on_budget: "refuse" }, keyed);
      expect([infeasible.status, await infeasible.json()]).toEqual([
        422,
        { error: expect.objectContaining({ code: "infeasible", dimension: "usd", limit: 0.01, spent: 0, held: 0 }) },
      ]);
      expect(watched(run.id).calls).toMatchObject({ addFloor: 1 });
      expect(watched(run.id).calls["stagePages"]).toBeUndefined();
      expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0, slot: 0, named: 0 });
      expect(await storedBytes(run)).toBeLessThan(before + 100_000);
      expect(await run.budget()).toMatchObject({ usd: { spent: 0, reserved: 0 }, calls: { spent: 0, reserved: 0 } });
      // Numbers are stored as JavaScript writes them: 80 times 900,000 characters, from 16 MB.
      const params = `{"stop":[${Array<string>(41_000).fill("1e20").join(",")}]}`;
      const items = prompts(80).map((prompt) => `{"prompt":${JSON.stringify(prompt)},"params":${params}}`);
      const tooLarge = new Blob([`{"model":"up/echo","items":[${items.join(",")}]}`]);
      const calls = watched(run.id).calls["stagePages"] ?? 0;
      const writes = countedWrites();
      const refused = await run.postStream("/batch", tooLarge.stream(), "application/json");
      // The first few went to the run's rows, the others to R2.
      expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(calls + 2);
      expect(writes.count).toBeGreaterThan(40);
      expect([refused.status, await refused.json()]).toEqual([
        413,
        { error: expect.objectContaining({ code: "payload_too_large", bytes_max: GROUP_CHARS_MAX }) },
      ]);
      expect((await env.FILES.list({ prefix: `${run.id}/` })).objects).toEqual([]);
      expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0, slot: 0 });
      expect(await storedBytes(run)).toBeLessThan(before + 100_000);
    },
  );
});

describe("a large batch with on_budget: refuse", () => {
  /** Twelve megabytes, of which four become rows and the others objects in R2. */
  const large = { prompts: prompts(200).map((prompt) => prompt.padEnd(60_000, ".")), on_budget: "refuse" };

  it.each([
    ["nothing", 0, { stagePages: 0, writes: 0 }],
    ["what fits, and drops it,", 100, { stagePages: 6, writes: 6 }],
  ])(
    "whose floor never fits stores %s if %i of its 200 calls fit",
    { tags: ["slow"], ...MANY_CALLS },
    async (_, calls, most) => {
      const run = await openRun({ budget: { calls } });
      const writes = countedWrites();
      const refused = await run.post("/batch", { ...large, model: "up/key/never-fits" });
      expect([refused.status, await refused.json()]).toEqual([
        422,
        { error: expect.objectContaining({ code: "infeasible", dimension: "calls", limit: calls }) },
      ]);
      const { stagePages = 0 } = watched(run.id).calls;
      expect(stagePages).toBeLessThanOrEqual(most.stagePages);
      expect(writes.count).toBeLessThanOrEqual(most.writes);
      expect((await env.FILES.list({ prefix: `${run.id}/` })).objects).toEqual([]);
      expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0, slot: 0 });
      expect((await upstreamStats("never-fits")).requests).toBe(0);
    },
  );

  it(
    "whose floor fits is opened, and its key brings its answer when nothing is left of the budget",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ budget: { calls: 200 } });
      const body = { ...large, model: "up/key/just-fits" };
      const first = await keyed(run, "key", "/batch", body);
      expect(first).toMatchObject({ status: 200, replayed: false });
      expect(await run.budget()).toMatchObject({ calls: { spent: 200, reserved: 0 } });
      expect(await keyed(run, "key", "/batch", body)).toMatchObject({ status: 200, replayed: true });
      expect(await keyed(run, "other", "/batch", body)).toMatchObject({ status: 422 });
      expect((await upstreamStats("just-fits")).requests).toBe(200);
    },
  );
});

describe("a large batch under an Idempotency-Key that is refused", () => {
  it("leaves nothing stored, and its key can be reused", async () => {
    const run = await openRun({ models: ["up/key/allowed*"] });
    const large = prompts(40).map((prompt) => prompt.padEnd(60_000, "."));
    const refused = await keyed(run, "key", "/batch", { prompts: large, model: "up/echo" });
    expect(refused).toMatchObject({ status: 403, json: { error: { code: "model_not_allowed" } } });
    expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(1);
    expect(await rowCounts(run)).toMatchObject({ grp: 0, page: 0, named: 0, slot: 0 });
    const accepted = await keyed(run, "key", "/batch", { prompts: ["small"], model: "up/key/allowed" });
    expect(accepted).toMatchObject({ status: 200, replayed: false, json: { results: ["small"] } });
  });
});

describe("a run at its storage limit", () => {
  it("takes no more calls and events, while accepted calls continue", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const first = await run.post("/batch", { prompts: ["a", "b"], model: "up/latch/full" }, { headers: ASYNC });
    expect(first.status).toBe(202);
    const size = await runInDurableObject(run.object, (_, state) => {
      const full = vi.spyOn(Object.getPrototypeOf(state.storage.sql), "databaseSize", "get");
      full.mockReturnValue(RUN_STORED_BYTES_MAX);
      return full;
    });
    try {
      const refused = { status: 413, code: "payload_too_large", bytesMax: RUN_STORED_BYTES_MAX };
      for (const [path, body] of [
        ["/batch", { prompts: ["c"], model: "up/echo" }],
        ["/log", { event_type: "mine" }],
      ] as const) {
        const answer = await run.post(path, body);
        const { error } = (await answer.json()) as { error: { code: string; bytes_max: number } };
        expect({ status: answer.status, code: error.code, bytesMax: error.bytes_max }).toEqual(refused);
      }
      expect(await run.object.stagePages("key", largePages(1, 10, "up/echo"))).toMatchObject({ ok: false });
      await openLatch("full");
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
      expect(await rowCounts(run)).toMatchObject({ grp: 1, slot: 2 });
    } finally {
      size.mockRestore();
    }
    expect((await run.post("/log", { event_type: "mine" })).status).toBe(201);
  });
});
