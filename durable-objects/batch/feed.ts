/** Feeding a run: the next lines of a batch become a group of background slots, few at a time, so that none pile up. */
import type { LineRules } from "../../src/batch/validate.ts";
import { readLine } from "../../src/batch/validate.ts";
import { CallPageBuilder, type CallPage } from "../../src/engine/call-page.ts";
import type { Reason } from "../../src/errors.ts";
import { BATCH_CHUNK_BYTES, BATCH_CHUNK_LINES, PAGES_CALL_CHARS_MAX } from "../../src/limits.ts";
import { rawCallFactsOf } from "../../src/protocol/request/call-facts.ts";
import type { OpenGroupReply, OpenGroupRequest } from "../../src/run-api/groups.ts";
import type { Refused } from "../../src/run-api/types.ts";
import type { RunCaller } from "../../src/run-client/caller.ts";
import { PLAIN_RULES } from "../../src/run-client/groups/plain-rules.ts";
import { linesFrom } from "./input.ts";
import type { Chunk, Job } from "./store.ts";

/** Lines that were read from the input, in pages, and the position of the next one. */
type Taken = { builder: CallPageBuilder; pages: CallPage[]; customIds: string[]; feed: Job["feed"] };

export type Fed =
  /** `lanes`, by number, are to be started. */
  | { kind: "opened"; chunk: Chunk; feed: Job["feed"]; lanes: readonly number[] }
  /** The run refused the lines: they end with `reason`. */
  | { kind: "refused"; reason: Reason; customIds: string[]; feed: Job["feed"] }
  | { kind: "nothing"; feed: Job["feed"] };

const decoder = new TextDecoder();

/**
 * Opens the next chunk of lines as a group. `capacity`: what its executor claims with the opening; null = lanes execute it. A repeated request for the same chunk finds the group that the first one opened.
 */
export async function feedChunk(
  bucket: R2Bucket,
  run: RunCaller,
  job: Job,
  { rules, capacity, nowMs }: { rules: LineRules; capacity: number | null; nowMs: number },
): Promise<Fed> {
  const taken = await takeLines(bucket, job, rules);
  const { builder, pages, customIds, feed } = taken;
  if (customIds.length === 0) return { kind: "nothing", feed };
  const openKey = `${job.batch.id}.${job.feed.chunkNo}`;
  const last = await stage(run, openKey, pages);
  if ("reason" in last) return { kind: "refused", reason: last.reason, customIds, feed };
  const request: OpenGroupRequest = {
    ...PLAIN_RULES,
    openKey,
    count: customIds.length,
    background: true,
    // What has not started by the end of the completion window never starts.
    deadlineMs: Math.max(1, job.batch.expiresAtS * 1_000 - nowMs),
    detach: true,
    hasCustomIds: true,
    models: builder.models,
    defaultsJson: "{}",
    batchId: job.batch.id,
  };
  const opened = await run.callWithRetry<OpenGroupReply>((stub) => stub.openGroup(request, last.pages, capacity));
  if (!opened.ok) return { kind: "refused", reason: opened.reason, customIds, feed };
  const { chunkNo: no, index: firstIndex } = job.feed;
  const chunk = { no, seq: opened.seq, firstIndex, count: customIds.length, nextIndex: 0 };
  return { kind: "opened", chunk, feed, lanes: opened.lanes };
}

async function takeLines(bucket: R2Bucket, job: Job, rules: LineRules): Promise<Taken> {
  const builder = new CallPageBuilder({});
  const pages: CallPage[] = [];
  const customIds: string[] = [];
  const feed = { ...job.feed };
  let bytes = 0;
  feed.done = true;
  for await (const line of linesFrom(bucket, job, feed)) {
    if (customIds.length === BATCH_CHUNK_LINES || bytes >= BATCH_CHUNK_BYTES) {
      feed.done = false;
      break;
    }
    const read = readLine(line.bytes, rules);
    if (!read.ok || line.bytes === null)
      throw new Error(`line ${line.number} of ${job.batch.id} was valid when the batch began, and now is not`);
    const { customId, endpoint, bodyStart, bodyEnd, model, facts } = read.value;
    const json = decoder.decode(line.bytes.subarray(bodyStart, bodyEnd));
    const page = builder.add({
      body: { raw: { endpoint, json } },
      facts: rawCallFactsOf(facts, { model, priority: 0, timeoutMs: null }),
      id: customId,
    });
    if (page !== null) pages.push(page);
    customIds.push(customId);
    bytes += line.bytes.length;
    // Reading continues behind the content of this line: its rest is blank and counts as the line's end.
    feed.start = line.end;
    feed.number = line.number;
    feed.index += 1;
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  feed.chunkNo += 1;
  return { builder, pages, customIds, feed };
}

/** Stores all but the last pages in the run; returns the last ones. */
async function stage(
  run: RunCaller,
  openKey: string,
  all: readonly CallPage[],
): Promise<{ pages: CallPage[] } | Refused> {
  // A chunk has a few calls of pages: they go at once.
  const sending: Promise<Refused | null>[] = [];
  let pages: CallPage[] = [];
  let chars = 0;
  for (const page of all) {
    if (chars + page.calls.length > PAGES_CALL_CHARS_MAX && pages.length > 0) {
      const sent = pages;
      sending.push(run.callWithRetry<Refused | null>((stub) => stub.stagePages(openKey, sent)));
      pages = [];
      chars = 0;
    }
    pages.push(page);
    chars += page.calls.length;
  }
  const replies = await Promise.all(sending);
  return replies.find((reply) => reply !== null) ?? { pages };
}
