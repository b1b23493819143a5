/** Feeding a run: the next lines of a batch become a group of background slots, so few at a time that none piles up. */
import type { LineRules } from "../../src/batch/validate.ts";
import { readLine } from "../../src/batch/validate.ts";
import type { CallFacts } from "../../src/call.ts";
import { PageBuilder, type Page } from "../../src/engine/page.ts";
import type { Reason } from "../../src/errors.ts";
import { BATCH_CHUNK_BYTES, BATCH_CHUNK_LINES, PAGES_CALL_CHARS_MAX } from "../../src/limits.ts";
import type { RequestFacts } from "../../src/upstream/json-request.ts";
import type { RunCaller } from "../again.ts";
import type { OpenGroupReply, OpenGroupRequest, Refused } from "../run/rpc.ts";
import { linesFrom } from "./input.ts";
import type { Chunk, Job } from "./store.ts";

/** Lines that were read from the input, in pages, and where the next one begins. */
type Taken = { builder: PageBuilder; pages: Page[]; customIds: string[]; feed: Job["feed"] };

export type Fed =
  /** `lanes`, by number, are to be started. */
  | { kind: "opened"; chunk: Chunk; feed: Job["feed"]; lanes: readonly number[] }
  /** The run takes no such lines: they end with `reason`. */
  | { kind: "refused"; reason: Reason; customIds: string[]; feed: Job["feed"] }
  | { kind: "nothing"; feed: Job["feed"] };

const decoder = new TextDecoder();

/** Opens the next chunk of lines as a group. Opening the same chunk again finds the group that the first try made. */
export async function feedChunk(
  bucket: R2Bucket,
  run: RunCaller,
  job: Job,
  { rules, nowMs }: { rules: LineRules; nowMs: number },
): Promise<Fed> {
  const taken = await takeLines(bucket, job, rules);
  const { builder, pages, customIds, feed } = taken;
  if (customIds.length === 0) return { kind: "nothing", feed };
  const openKey = `${job.batch.id}.${job.feed.chunkNo}`;
  const last = await stage(run, openKey, pages);
  if ("reason" in last) return { kind: "refused", reason: last.reason, customIds, feed };
  const request: OpenGroupRequest = {
    openKey,
    named: null,
    count: customIds.length,
    single: false,
    background: true,
    concurrency: null,
    onError: "continue",
    onLost: "retry",
    // What has not begun by the end of the window never does.
    deadlineMs: Math.max(1, job.batch.expiresAtS * 1_000 - nowMs),
    split: false,
    detach: true,
    errorStyle: null,
    namesCalls: true,
    models: builder.models,
    defaultsJson: "{}",
  };
  const opened = await run.untilAnswered<OpenGroupReply>((stub) => stub.openGroup(request, last.pages));
  if (!opened.ok) return { kind: "refused", reason: opened.reason, customIds, feed };
  const { chunkNo: no, index: firstIndex } = job.feed;
  const chunk = { no, seq: opened.seq, firstIndex, count: customIds.length, nextIndex: 0 };
  return { kind: "opened", chunk, feed, lanes: opened.lanes };
}

async function takeLines(bucket: R2Bucket, job: Job, rules: LineRules): Promise<Taken> {
  const builder = new PageBuilder({});
  const pages: Page[] = [];
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
    if (!read.ok || line.bytes === null) throw new Error(`line ${line.number} of ${job.batch.id} was valid and is not`);
    const { customId, endpoint, bodyStart, bodyEnd, model, facts } = read.value;
    const json = decoder.decode(line.bytes.subarray(bodyStart, bodyEnd));
    const page = builder.add({ body: { raw: { endpoint, json } }, facts: callFactsOf(facts, model), id: customId });
    if (page !== null) pages.push(page);
    customIds.push(customId);
    bytes += line.bytes.length;
    // Reading goes on behind the content of this line: what is left of it is blank, and counts as its end.
    feed.start = line.end;
    feed.number = line.number;
    feed.index += 1;
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  feed.chunkNo += 1;
  return { builder, pages, customIds, feed };
}

/** Sends all but the last pages ahead. */
async function stage(run: RunCaller, openKey: string, all: readonly Page[]): Promise<{ pages: Page[] } | Refused> {
  let pages: Page[] = [];
  let chars = 0;
  for (const page of all) {
    if (chars + page.calls.length > PAGES_CALL_CHARS_MAX && pages.length > 0) {
      const sent = pages;
      const refused = await run.untilAnswered<Refused | null>((stub) => stub.stagePages(openKey, sent));
      if (refused !== null) return refused;
      pages = [];
      chars = 0;
    }
    pages.push(page);
    chars += page.calls.length;
  }
  return { pages };
}

function callFactsOf(facts: RequestFacts, model: string): CallFacts {
  const { promptBytes, messageCount, mediaParts, maxTokens, completions, promptTokenIds, unbounded } = facts;
  const read: CallFacts = { promptBytes, messageCount, mediaParts, model, maxTokens, priority: 0, timeoutMs: null };
  // Left out where they say nothing: they are stored with every line.
  if (completions !== 1) read.completions = completions;
  if (promptTokenIds > 0) read.promptTokenIds = promptTokenIds;
  if (unbounded.length > 0) read.unbounded = unbounded;
  return read;
}
