/**
 * The work of a batch, one step at a time. Each step ends with rows that say how far it came, so that a restart at any
 * moment goes on from there: a group that is opened again is found, lines that are written again are skipped.
 */
import { BatchCheck, type BatchVerdict } from "../../src/batch/check.ts";
import {
  cancelBatch,
  endBatch,
  failBatch,
  finalizeBatch,
  isFinal,
  isPastWindow,
  startBatch,
} from "../../src/batch/lifecycle.ts";
import type { NotRun } from "../../src/batch/output.ts";
import { readLine, type LineRules } from "../../src/batch/validate.ts";
import { expiryOf } from "../../src/batch/expires-after.ts";
import { noSuchFile, wrongPurpose } from "../../src/batch/line-error.ts";
import { configOf } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import { BATCH_TAIL_BYTES, BATCH_WAIT_MS } from "../../src/limits.ts";
import { targetOf } from "../../src/upstream/target.ts";
import { laneOf, runOf, shelfOf, type Objects } from "../address.ts";
import { RunCaller } from "../again.ts";
import type { GroupView, SlotView } from "../run/rpc.ts";
import { addLine, collectSlots, noLines } from "./collect.ts";
import { feedChunk } from "./feed.ts";
import { linesFrom } from "./input.ts";
import { BatchOutput } from "./output.ts";
import { Progress } from "./progress.ts";
import { BATCH_FILES, type BatchStore, type Chunk, type Job } from "./store.ts";
import { Watch } from "./watch.ts";

/** What a step came to: there is more to do at once, or the batch is over. */
export type Stepped = "again" | "over";

export class BatchWork {
  readonly #store: BatchStore;
  readonly #objects: Objects;
  readonly #bucket: R2Bucket;
  readonly #run: RunCaller;
  readonly #output: BatchOutput;
  readonly progress = new Progress();
  readonly #watch: Watch;
  /** Groups that the run was asked to cancel, by number. */
  readonly #cancelled = new Set<number>();
  readonly #now: () => number;

  constructor(store: BatchStore, objects: Objects, { bucket, runId }: { bucket: R2Bucket; runId: string }) {
    this.#store = store;
    this.#objects = objects;
    this.#bucket = bucket;
    this.#run = new RunCaller(objects, runId);
    this.#output = new BatchOutput(store, bucket);
    this.#watch = new Watch(this.#run, this.progress);
    this.#now = Date.now;
  }

  /** Does what comes next. */
  async step(job: Job): Promise<Stepped> {
    if (isFinal(job.batch)) return "over";
    if (job.batch.status === "validating") return await this.#validate(job);
    const chunks = this.#store.chunks();
    const stopped = this.#stopped(job);
    if (job.batch.status === "finalizing") return await this.#finish(job, "completed");
    if (stopped === "cancelled") for (const chunk of chunks) await this.#cancel(chunk);
    if (stopped === null && !job.feed.done && this.#watch.hasRoom(chunks)) return await this.#feed(job);
    if (chunks.length > 0) return await this.#collect(job, chunks);
    if (stopped !== null && !job.feed.done) return await this.#skipLines(job, stopped);
    if (stopped !== null) return await this.#finish(job, stopped);
    job.batch = finalizeBatch(job.batch, this.#nowS);
    this.#store.putJob(job);
    return "again";
  }

  get #nowS(): number {
    return Math.floor(this.#now() / 1_000);
  }

  /** Why nothing more of the batch starts, or null. */
  #stopped({ batch }: Job): NotRun | null {
    if (batch.status === "cancelling") return "cancelled";
    return isPastWindow(batch, this.#nowS) ? "expired" : null;
  }

  async #cancel({ seq }: Chunk): Promise<void> {
    if (this.#cancelled.has(seq)) return;
    this.#cancelled.add(seq);
    await this.#run.untilAnswered<GroupView | null>((stub) => stub.cancelGroup(seq));
  }

  /** Judges the whole input before anything is sent. */
  async #validate(job: Job): Promise<Stepped> {
    const verdict = await this.#verdict(job);
    if (this.#stopped(job) === "cancelled") {
      // Nothing was promised of any line yet.
      job.feed.done = true;
      this.#store.putJob(job);
      return "again";
    }
    job.batch = verdict.ok
      ? startBatch(job.batch, verdict, this.#nowS)
      : failBatch(job.batch, verdict.errors, this.#nowS);
    this.#store.putJob(job);
    return "again";
  }

  /** Reads the input to its end, or to where the verdict is known or nobody waits for it. */
  async #verdict(job: Job): Promise<BatchVerdict> {
    const { inputFileId: id, strict } = job.batch.request;
    const file = await shelfOf(this.#objects, job.runId).file(id);
    if (file === null) return { ok: false, errors: [{ ...noSuchFile(id), line: null }] };
    if (file.purpose !== "batch") return { ok: false, errors: [{ ...wrongPurpose(id, file.purpose), line: null }] };
    job.inputBytes = file.bytes;
    const check = new BatchCheck({ ...(await this.#rules(job)), fileBytes: file.bytes, strict });
    for await (const line of linesFrom(this.#bucket, job, { start: 0, number: 1 })) {
      check.add(line);
      if (check.isOver || this.#stopped(job) === "cancelled") break;
    }
    return check.finish();
  }

  /** What lines must agree with: the run's own rules, as they are now. */
  async #rules({ batch, runId }: Job): Promise<LineRules> {
    const parsed = configOf(this.#objects);
    const rules = await runOf(this.#objects, runId).modelRules();
    const config = parsed.ok ? parsed.config : null;
    const defaultModel = (rules.ok ? rules.rules.defaultModel : null) ?? config?.defaultModel ?? null;
    const serves = (model: string): boolean => !rules.ok || config === null || targetOf(model, rules.rules, config).ok;
    return { url: batch.request.url, defaultModel, serves };
  }

  async #feed(job: Job): Promise<Stepped> {
    // Every line was valid when the batch began; what has changed since is the run's to refuse.
    const rules = { ...(await this.#rules(job)), serves: () => true };
    const fed = await feedChunk(this.#bucket, this.#run, job, { rules, nowMs: this.#now() });
    if (fed.kind === "refused" && fed.reason.reason === "overloaded") {
      await scheduler.wait(Math.min(fed.reason.retryAfterMs, BATCH_WAIT_MS));
      return "again";
    }
    if (fed.kind === "refused" && isOver(fed.reason)) return this.#cancelWithRun(job);
    const lines = noLines();
    if (fed.kind === "refused") {
      fed.customIds.forEach((customId, place) => {
        const index = job.feed.index + place;
        const failed = { kind: "failed", reason: fed.reason, requestId: "", upstreamBody: null } as const;
        addLine(job, { index, customId }, failed, lines);
      });
    }
    job.feed = fed.feed;
    await this.#output.write(job, lines, () => {
      if (fed.kind === "opened") this.#store.putChunk(fed.chunk);
    });
    if (fed.kind === "opened") await this.#startLanes(job.runId, fed.lanes);
    return "again";
  }

  /** A lane that does not start is started again by the run's alarm. */
  async #startLanes(runId: string, lanes: readonly number[]): Promise<void> {
    await Promise.allSettled(lanes.map((lane) => laneOf(this.#objects, runId, lane).start(runId, lane)));
  }

  /** The run is over, and its batch with it. */
  #cancelWithRun(job: Job): Stepped {
    const cancelled = cancelBatch(job.batch, this.#nowS);
    if (cancelled.ok) job.batch = cancelled.value;
    this.#store.putJob(job);
    return "again";
  }

  /** Writes the lines of a group that has ended; where none has, waits until more is known of one. */
  async #collect(job: Job, chunks: readonly Chunk[]): Promise<Stepped> {
    const ended = await this.#watch.next(chunks);
    return ended === null ? "again" : await this.#write(job, ended);
  }

  async #write(job: Job, chunk: Chunk): Promise<Stepped> {
    const { seq } = chunk;
    while (chunk.nextIndex < chunk.count) {
      const from = chunk.nextIndex;
      const slots = await this.#run.untilAnswered<SlotView[]>((stub) => stub.results(seq, from));
      if (slots.length === 0) throw new Error(`group ${seq} of ${job.batch.id} has gone`);
      const lines = noLines();
      collectSlots(job, chunk, slots, lines);
      chunk.nextIndex += slots.length;
      // workerd keeps what a call returned until its next full collection: emptied, that is little.
      slots.length = 0;
      this.progress.written(chunk);
      await this.#output.write(job, lines, () => {
        if (chunk.nextIndex < chunk.count) this.#store.putChunk(chunk);
        else this.#store.dropChunk(chunk.no);
      });
    }
    this.#watch.forget(chunk);
    return "again";
  }

  /** Writes lines that will never run, a part of them. */
  async #skipLines(job: Job, why: NotRun): Promise<Stepped> {
    const rules = { ...(await this.#rules(job)), serves: () => true };
    const lines = noLines();
    const feed = { ...job.feed, done: true };
    let chars = 0;
    for await (const line of linesFrom(this.#bucket, job, job.feed)) {
      if (chars >= BATCH_TAIL_BYTES) {
        feed.done = false;
        break;
      }
      const read = readLine(line.bytes, rules);
      const customId = read.ok ? read.value.customId : "";
      addLine(job, { index: feed.index, customId }, { kind: "not_run", why }, lines);
      feed.start = line.end;
      feed.number = line.number;
      feed.index += 1;
      chars += customId.length + 200;
    }
    job.feed = feed;
    await this.#output.write(job, lines, () => undefined);
    return "again";
  }

  /** Makes the files and ends the batch. */
  async #finish(job: Job, to: "completed" | NotRun): Promise<Stepped> {
    const sizes = await this.#output.complete(job);
    const { runId, batch } = job;
    const createdAtS = this.#nowS;
    const expiresAtS = expiryOf({ purpose: "batch_output", createdAtS }, batch.request.outputExpiresAfterS);
    const ids: Record<string, string | null> = { output: null, error: null };
    for (const file of BATCH_FILES) {
      if (sizes[file] === 0) continue;
      const { id } = job.files[file];
      const filename = `${batch.id}_${file}.jsonl`;
      const record = { id, bytes: sizes[file], createdAtS, expiresAtS, filename, purpose: "batch_output" as const };
      await shelfOf(this.#objects, runId).addFile(record);
      ids[file] = id;
    }
    const { counts, usage, status } = job.batch;
    const result = { counts, usage, outputFileId: ids["output"] ?? null, errorFileId: ids["error"] ?? null };
    // A cancel that came while the files were made is answered, though there was nothing left to stop.
    job.batch = endBatch(job.batch, status === "cancelling" ? "cancelled" : to, { result, nowS: this.#nowS });
    this.#store.putJob(job);
    return "over";
  }
}

/** Whether a refusal means that the run takes nothing any more. */
function isOver({ reason }: Reason): boolean {
  return reason === "invalid_api_key" || reason === "not_found" || reason === "cancelled";
}
