/** A retry refers to the calls and answers of the groups before it: it is a request of a few bytes, and stores about as many. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { OPENED_AT_ONCE_MAX, RETRIES_IN_A_ROW_MAX } from "../../src/limits.ts";
import { crash } from "../support/objects-direct.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import { refusalOf } from "../support/objects-tree.ts";

const ITEMS = 40;
/** Characters of each prompt, which the upstream answers with: a batch of 1.2 MB and as many answers. */
const PROMPT_CHARS = 30_000;

const group = z.looseObject({
  id: z.string(),
  status: z.string(),
  results: z.array(z.string()),
  items: z.array(z.looseObject({ status: z.string(), attempts: z.number() })),
});
const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(
    z.string(),
    z.looseObject({ status: z.string(), attempts: z.number(), output: z.string().nullish() }),
  ),
});

const accepted = z.looseObject({ id: z.string() });
const counted = z.looseObject({ counts: z.record(z.string(), z.number()) });

const stored = (run: TestRun): Promise<number> =>
  runInDurableObject(run.object, (_: RunObject, { storage }) => storage.sql.databaseSize);
const rowsOf = async (run: TestRun): Promise<number> => (await run.object.rowsWritten()).all;

const prompt = (at: number) => `${at} `.padEnd(PROMPT_CHARS, "x");

/** Places whose result does not answer their prompt. */
function misplaced(results: readonly string[]): number[] {
  return results.flatMap((text, at) => (text.startsWith(`${at} x`) && text.length > PROMPT_CHARS / 2 ? [] : [at]));
}

/** Items whose last ones the upstream refuses so many times. */
function itemsOf(refusals: readonly number[], key: string) {
  return Array.from({ length: ITEMS }, (_, at) => {
    const times = refusals[at - (ITEMS - refusals.length)] ?? 0;
    return { prompt: prompt(at), model: times === 0 ? "up/x" : `up/key/${key}-${at}/status/400/first/${times}` };
  });
}

async function batchOf(run: TestRun, items: unknown[], rest: object = {}) {
  return group.parse(await (await run.post("/batch", { items, ...rest })).json());
}

async function retryOf(run: TestRun, id: string) {
  return group.parse(await (await run.post(`/groups/${id}/retry`, {})).json());
}

/** Bytes and rows that some work stores. */
async function costOf<T>(run: TestRun, work: () => Promise<T>): Promise<{ result: T; bytes: number; rows: number }> {
  const [bytes, rows] = [await stored(run), await rowsOf(run)];
  const result = await work();
  return { result, bytes: (await stored(run)) - bytes, rows: (await rowsOf(run)) - rows };
}

describe("a retry", () => {
  it("stores its own call's end, and none of the calls and answers that it keeps", { tags: ["slow"] }, async () => {
    const run = await openRun({ budget: { usd: 10 } });
    const params = { stop: [`no such ${"word ".repeat(20_000)}`] };
    const first = await batchOf(run, itemsOf([2], "one"), { params });
    expect(first.status).toBe("partial");
    const again = await costOf(run, () => retryOf(run, first.id));
    expect(again.result.items.map(({ attempts }) => attempts)).toEqual([...Array<number>(ITEMS - 1).fill(0), 1]);
    // The batch has 1.3 MB of calls, and 1.2 MB of answers. A table that is made anew has a page of 4 KB, and so has each index.
    expect(again.bytes).toBeLessThan(4 * 16_384);
    expect(again.rows).toBeLessThan(20);
    const last = await costOf(run, () => retryOf(run, again.result.id));
    expect(misplaced(last.result.results)).toEqual([]);
    // One answer is new.
    expect(last.bytes).toBeLessThan(4 * 16_384 + PROMPT_CHARS);
    expect([last.result.status, last.rows < 20]).toEqual(["completed", true]);
  });

  it("has all results by page and after a crash, of whichever group they are", async () => {
    const run = await openRun({ budget: { usd: 10 } });
    const first = await batchOf(run, itemsOf([1, 2, 3], "three"));
    const second = await retryOf(run, first.id);
    const third = await retryOf(run, second.id);
    await crash(run.object);
    const last = await retryOf(run, third.id);
    expect([second.status, third.status, last.status]).toEqual(["partial", "partial", "completed"]);
    await crash(run.object);
    for (const after of [-1, 0, 20, ITEMS - 3]) {
      const lines = await (await run.send("GET", `/groups/${last.id}/results?after=${after}`)).text();
      expect(lines.length).toBeGreaterThan(PROMPT_CHARS);
    }
    const whole = group.parse(await (await run.send("GET", `/groups/${last.id}?wait_ms=1`)).json());
    expect(misplaced(whole.results)).toEqual([]);
    expect((await run.send("GET", `/groups/${first.id}`)).status).toBe(200);
  });

  it("of a graph keeps outputs where they are, and its calls insert them", async () => {
    const run = await openRun({ budget: { usd: 10 } });
    const tasks = [
      { id: "find", prompt: prompt(1), model: "up/x" },
      { id: "weak", prompt: "{{find.output}} weak", model: "up/key/weak/status/400/first/2" },
      { id: "end", prompt: "end {{weak.output}}", model: "up/x" },
    ];
    const first = graph.parse(await (await run.post("/dag", { tasks })).json());
    expect(first.tasks["weak"]?.status).toBe("failed");
    const retry = async (id: string) => graph.parse(await (await run.post(`/dag/${id}/retry`, {})).json());
    const again = await costOf(run, () => retry(first.id));
    expect(again.bytes).toBeLessThan(3 * 16_384);
    await crash(run.object);
    const last = await retry(again.result.id);
    const output = last.tasks["end"]?.output ?? "";
    expect([last.status, output.startsWith("end 1 x"), output.length > PROMPT_CHARS / 2]).toEqual([
      "completed",
      true,
      true,
    ]);
    expect(last.tasks["find"]?.attempts).toBe(0);
  });

  it("is refused after so many in a row, in words that say what to do", { tags: ["slow"] }, async () => {
    const run = await openRun({ budget: { usd: 10 } });
    const items = [{ prompt: "a", model: "up/status/400" }];
    let { id } = await batchOf(run, items);
    for (let retried = 0; retried < RETRIES_IN_A_ROW_MAX; retried++) ({ id } = await retryOf(run, id));
    const refused = await refusalOf(await run.post(`/groups/${id}/retry`, {}));
    expect(refused).toMatchObject({ status: 400, code: "invalid_request", param: "id" });
    expect(refused.message).toContain("send what is left as a new batch");
  });

  it("keeps what had completed of a batch that is so large that it is read in slices", async () => {
    const run = await openRun({ max_parallel: 4 });
    const count = OPENED_AT_ONCE_MAX + 1;
    const stuck = "up/key/large-retry/latch/never";
    const first = { model: "up/m", priority: "critical" };
    const itemOf = (at: number) => ({ prompt: `${at}`, ...(at % 700 === 0 ? first : { model: stuck }) });
    const items = Array.from({ length: count }, (_, at) => itemOf(at));
    const headers = { prefer: "respond-async" };
    const countsOf = async (id: string) => counted.parse(await (await run.send("GET", `/groups/${id}`)).json()).counts;
    const { id } = accepted.parse(await (await run.post("/batch", { items }, { headers })).json());
    await vi.waitFor(async () => expect(await countsOf(id)).toMatchObject({ completed: 3 }), 20_000);
    await run.send("DELETE", `/groups/${id}`);
    const retry = accepted.parse(await (await run.post(`/groups/${id}/retry`, {}, { headers })).json());
    expect(await countsOf(retry.id)).toMatchObject({ completed: 3, cancelled: 0 });
    await run.send("DELETE", `/groups/${retry.id}`);
    expect(await countsOf(retry.id)).toMatchObject({ completed: 3, cancelled: count - 3 });
    const again = accepted.parse(await (await run.post(`/groups/${retry.id}/retry`, {}, { headers })).json());
    expect(await countsOf(again.id)).toMatchObject({ completed: 3, cancelled: 0 });
    await run.send("DELETE", `/groups/${again.id}`);
  });
});
