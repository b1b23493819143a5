/** Bodies of a large batch in R2: read ahead of dispatch, after every kind of restart, and deleted with their run. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LEASE_TTL_MS, ROW_BODIES_CHARS_MAX, STAGED_KEPT_MS } from "../../src/limits.ts";
import { RunObject } from "../../src/index.ts";
import type { SlotView } from "../../src/objects/methods/groups.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, evict, pagesOf } from "../support/objects-direct.ts";
import { keyed, openAsync } from "../support/objects-group.ts";
import { ringUntil } from "../support/objects-tree.ts";
import { expectWhole, openLatch, openRun, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";

/** Characters of a prompt: each page has a few, and each object of R2 a few pages. */
const CHARS = 100_000;
const COUNT = 60;

/** More than the rows of a group may have; every prompt begins with its number and ends in `words`. */
const large = (words = ""): string[] =>
  Array.from({ length: COUNT }, (_, index) => `${index} `.padEnd(CHARS, "x") + words);

const keysOf = async (run: TestRun): Promise<string[]> =>
  (await env.FILES.list({ prefix: `${run.id}/` })).objects.map(({ key }) => key);

/** Characters of bodies in the rows of a run. */
const rowChars = (run: TestRun): Promise<number> =>
  runInDurableObject(run.object, (_: RunObject, { storage: { sql } }) =>
    Number(sql.exec("SELECT sum(length(calls)) AS chars FROM page").one()["chars"]),
  );

describe("a batch with more than a few megabytes of prompts", () => {
  it("is answered in order, with most of its prompts in R2, which go with its run", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 16, retention_s: 60 });
    expectWhole(await run.batch({ prompts: large(), model: "up/key/large" }), large());
    expect((await upstreamStats("large")).requests).toBe(COUNT);
    expect(await rowChars(run)).toBeLessThan(ROW_BODIES_CHARS_MAX + 1_000);
    const keys = await keysOf(run);
    expect(keys.length).toBeGreaterThanOrEqual(4);
    expect(keys.every((key) => key.startsWith(`${run.id}/bodies/`))).toBe(true);
    await run.object.endAndWait("closed", null);
    skipTime(61_000);
    await runDurableObjectAlarm(run.object);
    expect(await keysOf(run)).toEqual([]);
  });

  it("has none in R2 if they are less", async () => {
    const run = await openRun();
    const prompts = large().slice(0, 30);
    expectWhole(await run.batch({ prompts, model: "up/key/less" }), prompts);
    expect(await keysOf(run)).toEqual([]);
  });

  it.each([
    ["crashes", (run: TestRun) => crash(run.object)],
    ["is evicted", (run: TestRun) => evict(run.object)],
  ])("ends each slot once if its object %s in between", { tags: ["slow"] }, async (how, happens) => {
    const key = how.replace(" ", "-");
    const run = await openRun({ max_parallel: 4 });
    // Those behind the first few of R2 wait at the upstream, all others have ended.
    const asked = large().map((prompt, index) => (index >= 44 ? `${prompt} {{latch/${key}}}` : prompt));
    const batch = run.batch({ prompts: asked, model: `up/key/${key}` });
    await untilInFlight(key, 4);
    expect((await upstreamStats(key)).requests).toBe(48);
    const ended = happens(run);
    // An object that crashes later would take grants of the next calls with it. Its eviction waits for what is in flight.
    if (how === "crashes") await ended;
    await openLatch(key);
    await ended;
    expectWhole(await batch, asked);
    expect((await upstreamStats(key)).requests).toBe(COUNT);
  });

  it(
    "leaves nothing in R2 if it is refused, and only the first copy if its key is repeated",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const poor = await openRun({ budget: { calls: 10 } });
      const refused = await poor.post("/batch", { prompts: large(), model: "up/key/poor", on_budget: "refuse" });
      expect(refused.status).toBe(422);
      expect(await keysOf(poor)).toEqual([]);
      const run = await openRun({ max_parallel: 16 });
      const body = { prompts: large(), model: "up/key/repeated" };
      await keyed(run, "k", "/batch", body);
      const keys = await keysOf(run);
      expect((await keyed(run, "k", "/batch", body)).replayed).toBe(true);
      await expect.poll(() => keysOf(run)).toEqual(keys);
      expect((await upstreamStats("repeated")).requests).toBe(COUNT);
    },
  );

  it(
    "keeps its prompts in R2 if the run has opened it, although no reply says so",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ max_parallel: 16 });
      const plain = RunObject.prototype.openGroup;
      onTestFinished(() => void (RunObject.prototype.openGroup = plain));
      RunObject.prototype.openGroup = async function (this: RunObject, ...args: Parameters<typeof plain>) {
        await plain.apply(this, args);
        throw new Error("the test loses a reply");
      };
      const failed = await run.post("/batch", { prompts: large(), model: "up/key/unreplied" });
      expect(failed.status).toBe(500);
      // Its Worker has started no lanes, and makes none of the attempts that it claimed: the alarm ends them, and starts lanes.
      skipTime(LEASE_TTL_MS);
      await ringUntil([run], async () => (await run.object.waitGroup(1, 0))?.status === "completed");
      expect((await upstreamStats("unreplied")).requests).toBe(COUNT);
    },
  );

  it("leaves nothing in R2 if its Worker dies in the middle of the upload", async () => {
    const run = await openRun({ expires_in_s: 86_400 });
    await run.object.stagePages("dead", pagesOf(["staged"], "up/key/dead").pages);
    await env.FILES.put(`${run.id}/bodies/dead/0`, "{}");
    await env.FILES.put(`${run.id}/bodies/alive/0`, "{}");
    skipTime(STAGED_KEPT_MS);
    await runDurableObjectAlarm(run.object);
    expect(await keysOf(run)).toEqual([`${run.id}/bodies/alive/0`]);
  });

  it(
    "fails those slots, and only those, whose prompts are gone from R2",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ max_parallel: 1 });
      const prompts = large();
      await openAsync(run, {
        prompts: [`${prompts[0]} {{latch/gone}}`, ...prompts.slice(1)],
        model: "up/key/gone",
      });
      await untilInFlight("gone", 1);
      const last =
        (await keysOf(run)).toSorted((a, b) => a.localeCompare(b, undefined, { numeric: true })).at(-1) ?? "";
      const lost = (await (await env.FILES.get(last))?.text())?.split("\n").length ?? 0;
      expect(lost).toBeGreaterThan(0);
      await env.FILES.delete(last);
      await openLatch("gone");
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("partial");
      const slots: SlotView[] = [];
      while (slots.length < COUNT) slots.push(...(await run.object.results(1, slots.length)));
      const failed = slots.filter(({ state }) => state === "failed");
      expect(failed.map(({ index }) => index)).toEqual(slots.slice(COUNT - lost).map(({ index }) => index));
      expect(failed.every(({ attempts, reason }) => attempts === 0 && reason?.reason === "internal")).toBe(true);
      expect((await upstreamStats("gone")).requests).toBe(COUNT - lost);
    },
  );

  it(
    "keeps no other call of its run waiting while R2 does not answer, and continues when it does",
    { tags: ["slow"] },
    async () => {
      const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
      onTestFinished(() => log.mockRestore());
      const bucket = failingReads();
      const run = await openRun({ max_parallel: 8 });
      await openAsync(run, { prompts: large(), model: "up/key/down" });
      // All that is in rows has run. Between two claims no slot runs either, so the counts of one look must say it all.
      await expect
        .poll(async () => {
          const { running = 0, completed = 0, queued = 0 } = (await run.object.waitGroup(1, 0))?.counts ?? {};
          return [running, completed > 30, queued > 10, completed + queued];
        })
        .toEqual([0, true, true, COUNT]);
      expect((await run.query({ prompt: "beside", model: "up/key/down" })).text).toBe("beside");
      bucket.isDown = false;
      // The run's alarm looks again. The clock of these tests has gone ahead, so the runtime would ring it late.
      await ringUntil([run], async () => (await run.object.waitGroup(1, 0))?.status === "completed");
      expect((await upstreamStats("down")).requests).toBe(COUNT + 1);
    },
  );
});

/** Makes reads of R2 fail until the test says otherwise. Tests and objects share one isolate, and so its prototypes. */
function failingReads(): { isDown: boolean } {
  const state = { isDown: true };
  const prototype: { get: (this: R2Bucket, key: string) => Promise<unknown> } = Object.getPrototypeOf(env.FILES);
  const plain = prototype.get;
  prototype.get = async function (key) {
    if (state.isDown) throw new Error("R2 does not answer");
    return plain.call(this, key);
  };
  onTestFinished(() => void (prototype.get = plain));
  return state;
}
