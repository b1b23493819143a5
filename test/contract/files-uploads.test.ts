/** `/v1/uploads` from outside: a file in parts, in any order and at once, checked as a whole. */
import { toFile } from "openai";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatLine, endOf, jsonl, resultsOf, startBatchPlace, type BatchPlace, type BatchRun } from "./batch-place.ts";

let place: BatchPlace;
let run: BatchRun;
beforeAll(async () => {
  place = await startBatchPlace();
  run = await place.openRun();
});
afterAll(() => place.stop());

const md5Of = (bytes: Uint8Array) => createHash("md5").update(bytes).digest("hex");
const begin = (bytes: number, purpose: "batch" | "user_data" = "batch") =>
  run.send("/v1/uploads", { json: { filename: "big.jsonl", purpose, bytes, mime_type: "application/jsonl" } });

async function beginUpload(bytes: number) {
  return await run.openai.uploads.create({
    filename: "big.jsonl",
    purpose: "batch",
    bytes,
    mime_type: "application/jsonl",
  });
}

async function addPart(uploadId: string, bytes: Uint8Array): Promise<string> {
  const data = await toFile(bytes);
  return (await run.openai.uploads.parts.create(uploadId, { data })).id;
}

describe("an upload", () => {
  it("of concurrent parts becomes one file in the named order, which a batch can run", { tags: ["slow"] }, async () => {
    const lines = Array.from({ length: 300 }, (_, at) =>
      chatLine(`c${at}`, at % 25 === 0 ? "x".repeat(500_000) : `hi ${at}`),
    );
    const whole = Buffer.from(jsonl(lines));
    const pieces = [0, 1, 2, 3].map((at) => whole.subarray((at * whole.length) / 4, ((at + 1) * whole.length) / 4));
    const upload = await beginUpload(whole.length);
    expect(upload).toMatchObject({
      object: "upload",
      status: "pending",
      bytes: whole.length,
      filename: "big.jsonl",
      purpose: "batch",
      file: null,
    });
    expect(upload.expires_at - upload.created_at).toBe(3_600);
    const part_ids = await Promise.all(pieces.map((piece) => addPart(upload.id, piece)));
    const completed = await run.openai.uploads.complete(upload.id, { part_ids, md5: md5Of(whole).toUpperCase() });
    expect(completed).toMatchObject({
      status: "completed",
      file: { object: "file", bytes: whole.length, purpose: "batch", filename: "big.jsonl" },
    });
    expect(await run.openai.uploads.complete(upload.id, { part_ids })).toEqual(completed);
    const id = completed.file?.id ?? "";
    expect(Buffer.from(await (await run.openai.files.content(id)).arrayBuffer()).equals(whole)).toBe(true);
    const created = await run.openai.batches.create({
      input_file_id: id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    const batch = await endOf(run, created);
    expect(batch.request_counts).toEqual({ total: 300, completed: 300, failed: 0 });
    expect((await resultsOf(run, batch)).output.size).toBe(300);
  });

  it("has its parts in the named order, not in order of arrival, without unnamed parts", async () => {
    const upload = await beginUpload(12);
    const [second, unused, first] = [
      await addPart(upload.id, Buffer.from('"b":2}')),
      await addPart(upload.id, Buffer.from("unused")),
      await addPart(upload.id, Buffer.from('{"a":1,'.slice(0, 6))),
    ];
    expect(unused).not.toBe(first);
    const wrong = await run.send(`/v1/uploads/${upload.id}/complete`, { json: { part_ids: [second, first] } });
    expect([wrong.status, wrong.json]).toEqual([400, expect.objectContaining({})]);
    expect(wrong.json).toMatchObject({ error: { message: "Invalid file format for Batch API. Must be .jsonl" } });
    const again = await run.send(`/v1/uploads/${upload.id}/complete`, { json: { part_ids: [first, second] } });
    expect(again.status).toBe(400);
  });

  it("is not completed with wrong parts, and can still be completed afterwards", { tags: ["slow"] }, async () => {
    const text = Buffer.from('{"a":1}\n{"b":2}\n');
    const upload = await beginUpload(text.length);
    const first = await addPart(upload.id, text.subarray(0, 5));
    const rest = await addPart(upload.id, text.subarray(5));
    const complete = (json: object) => run.send(`/v1/uploads/${upload.id}/complete`, { json });
    for (const [json, param] of [
      [{ part_ids: [first] }, "part_ids"],
      [{ part_ids: [first, rest, first] }, "part_ids"],
      [{ part_ids: [first, "part_nowhere"] }, "part_ids"],
      [{ part_ids: [first, rest], md5: md5Of(Buffer.from("other")) }, "md5"],
      [{}, "part_ids"],
    ] as const) {
      const answer = await complete(json);
      expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([400, "false"]);
      expect(answer.json).toMatchObject({ error: { param } });
    }
    const files = (await run.openai.files.list({ purpose: "batch" })).data;
    expect(files.filter(({ bytes }) => bytes === text.length)).toEqual([]);
    const completed = await run.openai.uploads.complete(upload.id, { part_ids: [first, rest], md5: md5Of(text) });
    expect(await (await run.openai.files.content(completed.file?.id ?? "")).text()).toBe(text.toString());
  });

  it("that is completed twice concurrently becomes one file", async () => {
    const text = Buffer.from('{"a":1}\n');
    const upload = await beginUpload(text.length);
    const part_ids = [await addPart(upload.id, text)];
    const before = (await run.openai.files.list()).data.length;
    const both = await Promise.all([1, 2].map(() => run.openai.uploads.complete(upload.id, { part_ids })));
    expect(both[0]?.file?.id).toBe(both[1]?.file?.id);
    expect((await run.openai.files.list()).data).toHaveLength(before + 1);
  });

  it("that is cancelled or completed accepts no part, and cannot be cancelled or completed twice", async () => {
    const cancelled = await beginUpload(8);
    await addPart(cancelled.id, Buffer.from('{"a":1}\n'));
    expect(await run.openai.uploads.cancel(cancelled.id)).toMatchObject({ status: "cancelled", file: null });
    expect(await run.openai.uploads.cancel(cancelled.id)).toMatchObject({ status: "cancelled" });
    await expect(addPart(cancelled.id, Buffer.from("x"))).rejects.toMatchObject({ status: 400 });
    await expect(run.openai.uploads.complete(cancelled.id, { part_ids: [] })).rejects.toMatchObject({ status: 400 });
    const completed = await beginUpload(8);
    const part_ids = [await addPart(completed.id, Buffer.from('{"a":1}\n'))];
    await run.openai.uploads.complete(completed.id, { part_ids });
    await expect(run.openai.uploads.cancel(completed.id)).rejects.toMatchObject({ status: 400 });
    await expect(addPart(completed.id, Buffer.from("x"))).rejects.toMatchObject({ status: 400 });
  });

  it("is refused if it would be too large or its fields are invalid", async () => {
    expect((await begin(200 * 1024 * 1024)).status).toBe(200);
    expect((await begin(200 * 1024 * 1024 + 1)).json).toMatchObject({ error: { message: "File is too large." } });
    // Its parts and its file have room in a run, which stores 5 GiB; of what may be larger, none has.
    expect((await begin(2 * 1024 ** 3, "user_data")).status).toBe(200);
    expect(await begin(8 * 1024 ** 3, "user_data")).toMatchObject({
      status: 413,
      json: { error: { code: "payload_too_large" } },
    });
    expect((await begin(8 * 1024 ** 3 + 1, "user_data")).json).toMatchObject({ error: { param: "bytes" } });
    expect((await begin(0)).json).toMatchObject({ error: { param: "bytes" } });
  });

  it("is not found with another run's token", async () => {
    const upload = await beginUpload(8);
    const { openai } = await place.openRun();
    await expect(
      openai.uploads.parts.create(upload.id, { data: await toFile(Buffer.from("x")) }),
    ).rejects.toMatchObject({ status: 404 });
    await expect(openai.uploads.complete(upload.id, { part_ids: [] })).rejects.toMatchObject({ status: 404 });
    await expect(openai.uploads.cancel(upload.id)).rejects.toMatchObject({ status: 404 });
    expect(await run.openai.uploads.cancel(upload.id)).toMatchObject({ status: "cancelled" });
  });
});
