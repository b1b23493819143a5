/**
 * Feeding a run: the next lines of a batch become a group of background slots, few at a time, so that none pile up; those that go
 * through batches of their provider become one group.
 */
import type { LineRules } from "../../src/batch/validate.ts";
import { readLine } from "../../src/batch/validate.ts";
import { isMessageBatch } from "../../src/batch/messages/document.ts";
import { BATCH_TIER } from "../../src/call.ts";
import { CallPageBuilder, type CallPage } from "../../src/run/queue/call-page.ts";
import type { Reason } from "../../src/errors.ts";
import {
  BATCH_CHUNK_BYTES,
  BATCH_CHUNK_LINES,
  BATCH_FILE_BYTES_MAX,
  BATCH_LINES_MAX,
  GROUP_MODELS_CHARS_MAX,
} from "../../src/limits.ts";
import { rawCallFactsOf } from "../../src/providers/formats/request/call-facts.ts";
import type { OpenGroupReply, OpenGroupRequest } from "../../src/objects/methods/groups.ts";
import type { Refused } from "../../src/objects/methods/types.ts";
import type { RunCaller } from "../../src/objects/clients/caller.ts";
import { PLAIN_RULES } from "../../src/objects/clients/groups/plain-rules.ts";
import { linesFrom } from "./input.ts";
import { Staging } from "./staging.ts";
import type { Chunk, Job } from "./store.ts";

/** A line that cannot be sent, by its place among the requests. */
type RefusedLine = { index: number; customId: string; reason: Reason };

/** Lines that were read from the input and staged, all but their last pages, and the position of the next line. */
type Taken = {
  /** The last pages, or why the run takes none of them. */
  last: { pages: CallPage[] } | Refused;
  models: (string | null)[];
  customIds: string[];
  unfit: RefusedLine[];
  feed: Job["feed"];
};

/** `unfit`: lines among them that are not sent, and why. */
export type Fed = { unfit: readonly RefusedLine[]; feed: Job["feed"] } &
  /** `lanes`, by number, are to be started. */
  (
    | { kind: "opened"; chunk: Chunk; lanes: readonly number[] }
    /** The run refused the lines: they end with `reason`. */
    | { kind: "refused"; reason: Reason; customIds: string[] }
    | { kind: "nothing" }
  );

const decoder = new TextDecoder();

/** `named`: the name under which the run, which does not ask for the endpoint of a group, sends a line where its endpoint leads it. */
type FeedRules = LineRules & { named: (model: string) => string };

/**
 * Opens the next chunk of lines as a group. `capacity`: what its executor claims with the opening; null = lanes execute it. A repeated request for the same chunk finds the group that the first one opened.
 */
export async function feedChunk(
  bucket: R2Bucket,
  run: RunCaller,
  job: Job,
  { rules, capacity, now }: { rules: FeedRules; capacity: number | null; now: () => number },
): Promise<Fed> {
  const openKey = `${job.batch.id}.${job.feed.chunkNo}`;
  const viaProvider = job.batch.request.viaProvider === true;
  const { last, models, customIds, unfit, feed } = await takeLines(bucket, job, rules, new Staging(run, openKey));
  if (customIds.length === 0) return { kind: "nothing", unfit, feed };
  if ("reason" in last) return { kind: "refused", reason: last.reason, customIds, unfit, feed };
  const request: OpenGroupRequest = {
    ...PLAIN_RULES,
    openKey,
    count: customIds.length,
    background: true,
    // What has not started by the end of the completion window never starts.
    deadlineMs: Math.max(1, job.batch.expiresAtS * 1_000 - now()),
    detach: true,
    hasCustomIds: true,
    models,
    defaultsJson: "{}",
    batchId: job.batch.id,
    ...(viaProvider ? { viaBatches: true as const } : {}),
  };
  const opened = await run.callWithRetry<OpenGroupReply>((stub) => stub.openGroup(request, last.pages, capacity));
  if (!opened.ok) return { kind: "refused", reason: opened.reason, customIds, unfit, feed };
  const { chunkNo: no, index: firstIndex } = job.feed;
  const chunk = { no, seq: opened.seq, firstIndex, count: customIds.length, nextIndex: 0 };
  return { kind: "opened", chunk, unfit, feed, lanes: opened.lanes };
}

/**
 * How many lines a group has. All those of a batch that goes through its provider's are one: they wait for hours, and the object of
 * their group makes one of the provider's batches at a time.
 */
function boundsOf({ batch: { request } }: Job): { lines: number; bytes: number } {
  if (request.viaProvider === true) return { lines: BATCH_LINES_MAX, bytes: BATCH_FILE_BYTES_MAX };
  return { lines: BATCH_CHUNK_LINES, bytes: BATCH_CHUNK_BYTES };
}

async function takeLines(bucket: R2Bucket, job: Job, rules: FeedRules, staging: Staging): Promise<Taken> {
  const builder = new CallPageBuilder({});
  const bounds = boundsOf(job);
  const tier = job.batch.request.viaProvider === true ? ({ wantedTier: BATCH_TIER } as const) : {};
  const customIds: string[] = [];
  const unfit: RefusedLine[] = [];
  const feed = { ...job.feed };
  let bytes = 0;
  feed.done = true;
  for await (const line of linesFrom(bucket, job, feed)) {
    const isFull = customIds.length + unfit.length === bounds.lines || bytes >= bounds.bytes;
    if (isFull || builder.modelChars >= GROUP_MODELS_CHARS_MAX || staging.isRefused) {
      feed.done = false;
      break;
    }
    const read = readLine(line.bytes, rules);
    if (line.bytes === null || (!read.ok && !isMessageBatch(job.batch)))
      throw new Error(`line ${line.number} of ${job.batch.id} was valid when the batch began, and now is not`);
    if (read.ok) {
      const { customId, endpoint, bodyStart, bodyEnd, model, facts } = read.value;
      const json = decoder.decode(line.bytes.subarray(bodyStart, bodyEnd));
      const chosen = { model: rules.named(model), priority: 0, timeoutMs: null } as const;
      const page = builder.add({
        body: { raw: { endpoint, json } },
        facts: { ...rawCallFactsOf(facts, chosen), ...tier },
        id: customId,
      });
      if (page !== null) await staging.add(page);
      customIds.push(customId);
    } else {
      const { message, param } = read.fault;
      const reason = { reason: "invalid_request", message, param } as const;
      unfit.push({ index: feed.index, customId: read.customId ?? "", reason });
    }
    bytes += line.bytes.length;
    // Reading continues behind the content of this line: its rest is blank and counts as the line's end.
    feed.start = line.end;
    feed.number = line.number;
    feed.index += 1;
  }
  feed.chunkNo += 1;
  return { last: await staging.finish(builder.flush()), models: builder.models, customIds, unfit, feed };
}
