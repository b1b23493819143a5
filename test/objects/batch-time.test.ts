/** What time does to batches, files and uploads: windows close, contents go, and a run's end takes all of it. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { batchDocument as documentOfBatch } from "../../src/batch/document.ts";
import { batchIdOf } from "../../src/objects/address.ts";
import type { BatchObject, ShelfObject } from "../../src/index.ts";
import { BatchStore } from "../../durable-objects/batch/store.ts";
import { skipTime } from "../support/objects-clock.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { openLatch, openRun, type TestRun } from "../support/objects-run.ts";
import { ring } from "../support/objects-tree.ts";

const DAY_S = 86_400;
const WEEK_S = 7 * DAY_S;

const batchDocument = z.looseObject({
  id: z.string(),
  status: z.string(),
  input_file_id: z.string(),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  expired_at: z.number().nullable(),
  expires_at: z.number(),
  request_counts: z.object({ total: z.number(), completed: z.number(), failed: z.number() }),
});
const named = z.looseObject({ id: z.string() });
const lineOf = (customId: string, model: string, prompt = customId) =>
  JSON.stringify({
    custom_id: customId,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model, messages: [{ role: "user", content: prompt }] },
  });

const runFilesOf = (run: TestRun): DurableObjectStub<ShelfObject> => env.SHELF.getByName(run.id);
const batchOf = (run: TestRun, id: string): DurableObjectStub<BatchObject> =>
  env.BATCH.get(batchIdOf(env.BATCH, run.id, id));
const keysOf = async (run: TestRun) =>
  (await env.FILES.list({ prefix: `${run.id}/` })).objects.map(({ key }) => key.slice(run.id.length + 1)).toSorted();

async function upload(run: TestRun, text: string, fields: Record<string, string> = {}): Promise<string> {
  const form = new FormData();
  for (const [name, value] of Object.entries({ purpose: "batch", ...fields })) form.set(name, value);
  form.set("file", new File([text], "x.jsonl"));
  const headers = credentialOf(run);
  const response = await exports.default.fetch("http://fanout.test/v1/files", { method: "POST", headers, body: form });
  return named.parse(await response.json()).id;
}

/** The operator may name any run. */
function credentialOf(run: TestRun): Record<string, string> {
  return { authorization: `Bearer ${ADMIN_KEY}`, "x-fanout-run": run.id };
}

async function create(run: TestRun, lines: readonly string[]): Promise<string> {
  const input_file_id = await upload(run, lines.join("\n"));
  const request = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" };
  return named.parse(await (await run.post("/v1/batches", request)).json()).id;
}

async function documentOf(run: TestRun, id: string): Promise<z.infer<typeof batchDocument>> {
  const batch = await batchOf(run, id).read(run.id);
  return batchDocument.parse(batch === null ? null : documentOfBatch(batch));
}

async function contentOf(run: TestRun, id: string | null): Promise<string> {
  const response = await run.send("GET", `/v1/files/${id}/content`);
  return new TextDecoder().decode(await response.arrayBuffer());
}

/** Rings whatever alarms are set until the batch is as it should be: the clock that was put forward is not theirs. */
async function untilStatus(run: TestRun, id: string, status: string): Promise<z.infer<typeof batchDocument>> {
  await expect
    .poll(
      async () => {
        await ring(run.object);
        await Promise.race([runDurableObjectAlarm(batchOf(run, id)).catch(() => false), scheduler.wait(50)]);
        return (await documentOf(run, id)).status;
      },
      { interval: 20 },
    )
    .toBe(status);
  return await documentOf(run, id);
}

const expiredLine = z.object({
  response: z.null(),
  error: z.object({
    code: z.literal("batch_expired"),
    message: z.literal("This request could not be executed before the completion window expired."),
  }),
});
const isExpired = (line: unknown) => expiredLine.safeParse(line).success;

describe("a batch whose completion window closes", () => {
  it(
    "expires: finished lines keep their results, and lines that have not begun are reported and not counted",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ expires_in_s: WEEK_S, max_parallel: 2 });
      const lines = Array.from({ length: 40 }, (_, at) => lineOf(`c${at}`, "up/key/window/delay/100"));
      const id = await create(run, lines);
      await expect.poll(async () => (await documentOf(run, id)).request_counts.completed).toBeGreaterThan(1);
      skipTime(DAY_S * 1_000);
      const batch = await untilStatus(run, id, "expired");
      const output = (await contentOf(run, batch.output_file_id)).trimEnd().split("\n");
      const error = (await contentOf(run, batch.error_file_id)).trimEnd().split("\n");
      expect(output.length + error.length).toBe(40);
      expect(output.length).toBeGreaterThan(1);
      const untried = error.map((line): unknown => JSON.parse(line)).filter(isExpired);
      const { completed, failed } = batch.request_counts;
      expect([completed, failed]).toEqual([output.length, error.length - untried.length]);
      // What was in flight when the clock jumped has outlived its lease.
      expect(failed).toBeLessThanOrEqual(2);
      expect(batch.expired_at).toBeGreaterThanOrEqual(batch.expires_at);
    },
  );

  it("reports also lines that were never read from its file", { tags: ["slow"] }, async () => {
    const run = await openRun({ expires_in_s: WEEK_S, max_parallel: 2 });
    // More than are ever open at once: four groups of 256.
    const lines = Array.from({ length: 1_500 }, (_, at) => lineOf(`c${at}`, "up/key/unread/delay/200"));
    const id = await create(run, lines);
    await untilStatus(run, id, "in_progress");
    // A group's deadline counts from its opening, in the middle of which the clock must not jump.
    const groups = (_: BatchObject, { storage }: DurableObjectState) => new BatchStore(storage).chunks().length;
    await expect.poll(() => runInDurableObject(batchOf(run, id), groups)).toBe(4);
    skipTime(DAY_S * 1_000);
    const batch = await untilStatus(run, id, "expired");
    const error = (await contentOf(run, batch.error_file_id)).trimEnd().split("\n");
    const ids = error.map((line) => z.object({ custom_id: z.string() }).parse(JSON.parse(line)).custom_id);
    expect(error.length + batch.request_counts.completed).toBe(1_500);
    expect(error.filter((line) => isExpired(JSON.parse(line))).length).toBeGreaterThanOrEqual(error.length - 2);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("c1499");
  });

  it("ends as one of Anthropic's with an expired result for each request that has not been answered", async () => {
    const run = await openRun({ expires_in_s: WEEK_S, max_parallel: 1 });
    const requests = ["a", "b", "c"].map((custom_id) => ({
      custom_id,
      params: { model: "sim/slow?ms=60000", max_tokens: 9, messages: [{ role: "user", content: custom_id }] },
    }));
    const { id } = named.parse(await (await run.post("/v1/messages/batches", { requests })).json());
    skipTime(DAY_S * 1_000);
    await untilStatus(run, id, "expired");
    const path = `/v1/messages/batches/${id}`;
    expect(await (await run.send("GET", path)).json()).toMatchObject({
      processing_status: "ended",
      request_counts: { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 3 },
    });
    const bytes = await (await run.send("GET", `${path}/results`)).arrayBuffer();
    const results = new TextDecoder().decode(bytes).trimEnd().split("\n");
    expect(results.map((line): unknown => JSON.parse(line)).toSorted()).toEqual(
      ["a", "b", "c"].map((custom_id) => ({ custom_id, result: { type: "expired" } })),
    );
    // Its input is gone with its end.
    expect(await keysOf(run)).toHaveLength(1);
  });
});

describe("a file", () => {
  it("that has expired is not found by any route, and its content is deleted", async () => {
    const run = await openRun({ expires_in_s: WEEK_S });
    const expiring = { "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600" };
    const id = await upload(run, lineOf("a", "up/echo"), expiring);
    const kept = await upload(run, lineOf("a", "up/echo"));
    skipTime(3_590_000);
    expect((await run.send("GET", `/v1/files/${id}`)).status).toBe(200);
    skipTime(11_000);
    for (const path of [`/v1/files/${id}`, `/v1/files/${id}/content`])
      expect((await run.send("GET", path)).status).toBe(404);
    await runDurableObjectAlarm(runFilesOf(run));
    expect(await keysOf(run)).toEqual([kept]);
  });

  it("that is deleted while a batch reads it keeps its content until the batch has ended", async () => {
    const run = await openRun({ max_parallel: 2 });
    const id = await create(run, [lineOf("a", "up/key/read/latch/read")]);
    const { input_file_id } = await untilStatus(run, id, "in_progress");
    await run.send("DELETE", `/v1/files/${input_file_id}`);
    expect((await run.send("GET", `/v1/files/${input_file_id}`)).status).toBe(404);
    expect(await keysOf(run)).toEqual([input_file_id]);
    await openLatch("read");
    await untilStatus(run, id, "completed");
    await expect.poll(() => keysOf(run)).toEqual([(await documentOf(run, id)).output_file_id]);
  });
});

describe("an upload", () => {
  const begin = async (run: TestRun) => {
    const request = { filename: "x", purpose: "user_data", bytes: 4, mime_type: "text/plain" };
    return named.parse(await (await run.post("/v1/uploads", request)).json()).id;
  };
  const addPart = async (run: TestRun, id: string) => {
    const form = new FormData();
    form.set("data", new File(["data"], "part"));
    const headers = credentialOf(run);
    const url = `http://fanout.test/v1/uploads/${id}/parts`;
    return await exports.default.fetch(url, { method: "POST", headers, body: form });
  };

  it("expires after an hour, takes nothing more, and leaves nothing", async () => {
    const run = await openRun({ expires_in_s: WEEK_S });
    const id = await begin(run);
    const part = named.parse(await (await addPart(run, id)).json()).id;
    expect(await keysOf(run)).toEqual([part]);
    skipTime(3_600_000);
    expect((await addPart(run, id)).status).toBe(400);
    expect((await run.post(`/v1/uploads/${id}/complete`, { part_ids: [part] })).status).toBe(400);
    skipTime(3_600_000);
    await runDurableObjectAlarm(runFilesOf(run));
    expect(await keysOf(run)).toEqual([]);
  });

  it("that is completed leaves only its file", async () => {
    const run = await openRun({ expires_in_s: WEEK_S });
    const id = await begin(run);
    const part = named.parse(await (await addPart(run, id)).json()).id;
    const completed = await (await run.post(`/v1/uploads/${id}/complete`, { part_ids: [part] })).json();
    const { file } = z.object({ file: named }).parse(completed);
    skipTime(600_000);
    await runDurableObjectAlarm(runFilesOf(run));
    expect(await keysOf(run)).toEqual([file.id]);
  });
});

it("a run that is deleted leaves no files, no file object and no batch", async () => {
  const run = await openRun({ retention_s: 600 });
  const id = await create(run, [lineOf("a", "up/echo")]);
  await untilStatus(run, id, "completed");
  await run.send("POST", `/runs/${run.id}/close`);
  skipTime(600_000);
  await runDurableObjectAlarm(run.object);
  expect(await keysOf(run)).toEqual([]);
  const tables = (_: object, state: DurableObjectState) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_%' ESCAPE '\\'").toArray().length;
  expect(await runInDurableObject(runFilesOf(run), tables)).toBe(0);
  expect(await runInDurableObject(batchOf(run, id), tables)).toBe(0);
});
