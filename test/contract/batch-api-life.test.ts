/** The whole life of a batch, as OpenAI's own clients of two major versions lead it. */
import OpenAI, { toFile } from "openai";
import OpenAI6 from "openai-6";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatLine,
  completionOf,
  endOf,
  jsonl,
  resultsOf,
  runBatch,
  startBatchPlace,
  type BatchPlace,
  type BatchRun,
} from "./batch-place.ts";

type FileShape = {
  id: string;
  object: string;
  bytes: number;
  filename: string;
  purpose: string;
  status: string;
  expires_at?: number;
  created_at: number;
};
type BatchShape = { id: string; status: string; output_file_id?: string | null; error_file_id?: string | null };
type Pages<T> = PromiseLike<{ data: T[] }> & AsyncIterable<T>;

/** What both clients have in common, as far as it is used here. */
type Client = {
  files: {
    create(params: {
      file: Awaited<ReturnType<typeof toFile>> | ReturnType<typeof createReadStream>;
      purpose: "batch";
    }): PromiseLike<FileShape>;
    waitForProcessing(id: string): PromiseLike<FileShape>;
    retrieve(id: string): PromiseLike<FileShape>;
    content(id: string): PromiseLike<{ text(): Promise<string> }>;
    delete(id: string): PromiseLike<{ id: string; deleted: boolean }>;
    list(query: { limit: number }): Pages<FileShape>;
  };
  batches: {
    create(params: {
      input_file_id: string;
      endpoint: "/v1/chat/completions";
      completion_window: "24h";
      metadata: Record<string, string>;
    }): PromiseLike<BatchShape>;
    retrieve(id: string): PromiseLike<BatchShape>;
    list(query: { limit: number }): Pages<BatchShape>;
    cancel(id: string): PromiseLike<BatchShape>;
  };
};

let place: BatchPlace;
let dir: string;
beforeAll(async () => {
  place = await startBatchPlace();
  dir = await mkdtemp(join(tmpdir(), "fanout-input-"));
});
afterAll(async () => {
  await place.stop();
  await rm(dir, { recursive: true, force: true });
});

const clients: [string, (options: { apiKey: string; baseURL: string }) => Client][] = [
  ["openai 7", (options) => new OpenAI(options)],
  ["openai 6", (options) => new OpenAI6(options)],
];
const lines = [chatLine("a", "first"), chatLine("b", "second"), chatLine("c", "third")];
const text = jsonl(lines);

describe.each(clients)("with %s", (_, makeClient) => {
  let run: BatchRun;
  let client: Client;
  beforeAll(async () => {
    run = await place.openRun();
    client = makeClient({ apiKey: run.token, baseURL: `${place.gateway().url}/v1` });
  });

  it("a file can be uploaded in every way that the client offers, awaited, read and deleted", async () => {
    const path = join(dir, "prompts.jsonl");
    await writeFile(path, text);
    const uploads = [
      { file: createReadStream(path), filename: "prompts.jsonl" },
      { file: await toFile(Buffer.from(text), "buffer.jsonl"), filename: "buffer.jsonl" },
      { file: new File([text], 'naïve "name".jsonl'), filename: 'naïve "name".jsonl' },
      { file: await toFile(Buffer.from(text)), filename: "unknown_file" },
    ];
    for (const { file, filename } of uploads) {
      const made = await client.files.create({ file, purpose: "batch" });
      expect(made).toMatchObject({ object: "file", bytes: Buffer.byteLength(text), filename, purpose: "batch" });
      expect((made.expires_at ?? 0) - made.created_at).toBe(2_592_000);
      expect(await client.files.waitForProcessing(made.id)).toEqual(made);
      expect(await (await client.files.content(made.id)).text()).toBe(text);
      expect(await client.files.delete(made.id)).toMatchObject({ id: made.id, deleted: true });
      await expect(client.files.retrieve(made.id)).rejects.toMatchObject({ status: 404 });
    }
  });

  it("a batch can be created, polled to its end and listed, and its results downloaded", async () => {
    const { id } = await client.files.create({ file: await toFile(Buffer.from(text)), purpose: "batch" });
    const created = await client.batches.create({
      input_file_id: id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
      metadata: { job: "nightly" },
    });
    expect(created).toMatchObject({
      object: "batch",
      status: "validating",
      input_file_id: id,
      request_counts: { total: 0, completed: 0, failed: 0 },
      metadata: { job: "nightly" },
      output_file_id: null,
      error_file_id: null,
      errors: null,
      usage: null,
    });
    const ended = await endOf(run, created);
    expect(await client.batches.retrieve(created.id)).toEqual(ended);
    const { output } = await resultsOf(run, ended);
    expect([...output.values()].map((line) => [line.custom_id, completionOf(line).text]).toSorted()).toEqual([
      ["a", "first"],
      ["b", "second"],
      ["c", "third"],
    ]);
    await expect(client.batches.cancel(created.id)).rejects.toMatchObject({ status: 409 });
  });

  it("lists can be read page by page, newest first, to their end", { tags: ["slow"] }, async () => {
    const own = await place.openRun();
    const asOwn = makeClient({ apiKey: own.token, baseURL: `${place.gateway().url}/v1` });
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.unshift((await runBatch(own, lines)).id);
    const batches: string[] = [];
    for await (const batch of asOwn.batches.list({ limit: 2 })) batches.push(batch.id);
    expect(batches).toEqual(ids);
    const files: string[] = [];
    for await (const file of asOwn.files.list({ limit: 3 })) files.push(file.purpose);
    expect(files.toSorted()).toEqual([...Array<string>(5).fill("batch"), ...Array<string>(5).fill("batch_output")]);
  });
});
