/** A batch as its owner sees it, by OpenAI's client: a file streamed up, a batch created, looked at until it has ended. */
import { createReadStream } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Batch } from "openai/resources/batches";
import { lineOf } from "./tokens.ts";
import type { BatchRun } from "./world.ts";

/** A file of lines, in a folder of its own. Disposing deletes it. */
export type InputFile = AsyncDisposable & { path: string; lines: number; bytes: number };

/** Lines that are written at once. */
const WRITTEN_AT_ONCE = 1_000;

export async function writeInput(lines: number, lineBytes: number): Promise<InputFile> {
  const folder = await mkdtemp(join(tmpdir(), "fanout-bench-input-"));
  const path = join(folder, "input.jsonl");
  const file = await open(path, "w");
  let bytes = 0;
  for (let at = 0; at < lines; at += WRITTEN_AT_ONCE) {
    const count = Math.min(WRITTEN_AT_ONCE, lines - at);
    const text = Array.from({ length: count }, (_, place) => lineOf(at + place, lineBytes)).join("");
    bytes += (await file.write(text)).bytesWritten;
  }
  await file.close();
  const remove = () => rm(folder, { recursive: true, force: true });
  return { path, lines, bytes, [Symbol.asyncDispose]: remove };
}

/** Uploads the file as a stream. Its id. */
export async function upload({ openai }: BatchRun, { path }: InputFile): Promise<string> {
  return (await openai.files.create({ file: createReadStream(path), purpose: "batch" })).id;
}

export async function create({ openai }: BatchRun, inputFileId: string): Promise<Batch> {
  return await openai.batches.create({
    input_file_id: inputFileId,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
}

const FINAL = new Set(["completed", "failed", "expired", "cancelled"]);
/** Time between two looks at a batch, ms: the time of a batch of 1,000 must not be that of a look. */
const LOOK_MS = 25;

/** Waits until the batch has ended, whatever becomes of the gateway meanwhile. Throws after `msMax`. */
export async function endOf({ openai }: BatchRun, { id }: Batch, msMax: number): Promise<Batch> {
  const untilMs = performance.now() + msMax;
  let last: unknown = null;
  while (performance.now() < untilMs) {
    try {
      const batch = await openai.batches.retrieve(id, { maxRetries: 0 });
      if (FINAL.has(batch.status)) return batch;
      last = batch;
    } catch (error) {
      // Nobody is there between a kill and the next start.
      last = error;
    }
    await sleep(LOOK_MS);
  }
  throw new Error(`the batch did not end within ${msMax} ms: ${JSON.stringify(last)}`);
}

/** Creates a batch of an uploaded file and waits for its end. Its wall time, ms. */
export async function timed(run: BatchRun, fileId: string, msMax: number): Promise<{ batch: Batch; wallMs: number }> {
  const startedMs = performance.now();
  const batch = await endOf(run, await create(run, fileId), msMax);
  return { batch, wallMs: performance.now() - startedMs };
}
