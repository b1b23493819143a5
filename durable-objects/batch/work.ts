/**
 * The work of a batch, one step at a time. Each step ends with rows that record its progress, so that a restart at any
 * moment continues there: a repeated opening finds the group, and lines that are written already are skipped.
 */
import { BatchCheck, type BatchVerdict } from "../../src/batch/check.ts";
import { batchEndpoint } from "../../src/batch/endpoints.ts";
import { expiryOf } from "../../src/batch/expires-after.ts";
import {
  cancelBatch,
  endBatch,
  failBatch,
  finalizeBatch,
  isFinal,
  isPastWindow,
  startBatch,
  type NotRun,
} from "../../src/batch/lifecycle.ts";
import { noSuchFile, wrongPurpose } from "../../src/batch/line-error.ts";
import { isMessageBatch } from "../../src/batch/messages/document.ts";
import { readLine, type LineRules } from "../../src/batch/validate.ts";
import { configOf } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import { startWorkflow, WORKFLOW_CAPACITY, type Workflows } from "../../src/executors/workflow-group.ts";
import { BATCH_TAIL_BYTES, BATCH_WAIT_MS } from "../../src/limits.ts";
import type { GroupView, SlotView } from "../../src/objects/methods/groups.ts";
import type { ModelRulesReply } from "../../src/objects/methods/runs.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import { nameAtEndpoint, targetOf } from "../../src/providers/target.ts";
import { startLanes } from "../../src/objects/clients/lanes.ts";
import { runFilesOf, type Objects } from "../../src/objects/address.ts";
import { addLine, collectSlots, noLines } from "./collect.ts";
import { feedChunk } from "./feed.ts";
import { linesFrom } from "./input.ts";
import { BatchOutput } from "./output.ts";
import { Progress } from "./progress.ts";
import { BatchSpace } from "./space.ts";
import { BATCH_FILES, type BatchStore, type Chunk, type Job } from "./store.ts";
import { Watch } from "./watch.ts";

/** The result of a step: there is more to do at once, or once more of its groups has ended, or the batch has ended. */
export type Stepped = "more" | "sleep" | "ended";

export class BatchWork {
  readonly #store: BatchStore;
  readonly #objects: Objects;
  readonly #bucket: R2Bucket;
  readonly #run: RunCaller;
  readonly #output: BatchOutput;
  readonly #space: BatchSpace;
  readonly progress = new Progress();
  readonly #watch: Watch;
  /** Groups that were cancelled in the run, by number. */
  readonly #cancelled = new Set<number>();
  readonly #now: () => number;

  constructor(store: BatchStore, objects: Objects, { bucket, runId }: { bucket: R2Bucket; runId: string }) {
    this.#store = store;
    this.#objects = objects;
    this.#bucket = bucket;
    this.#run = new RunCaller(objects, runId);
    this.#output = new BatchOutput(store, bucket);
    this.#space = new BatchSpace({
      rowsBytes: () => store.storedBytes,
      report: (bytes) => this.#reportSpace(runId, bytes),
    });
    this.#watch = new Watch(this.#run, this.progress);
    this.#now = Date.now;
  }

  /** Does the next step, and reports what is stored. */
  async step(job: Job): Promise<Stepped> {
    const stepped = await this.#step(job);
    // Files that are complete count by themselves.
    const parts = stepped === "ended" ? [] : BATCH_FILES.map((file) => job.files[file].state.bytes);
    await this.#space.note(parts.reduce((sum, bytes) => sum + bytes, 0));
    return stepped;
  }

  async #step(job: Job): Promise<Stepped> {
    if (isFinal(job.batch)) return "ended";
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
    return "more";
  }

  async #reportSpace(runId: string, bytes: number): Promise<void> {
    const { id } = this.#store.job()?.batch ?? {};
    if (id === undefined) return;
    try {
      await runFilesOf(this.#objects, runId).batchStored(id, bytes);
    } catch (error) {
      // An object that a deploy has not replaced yet keeps no account.
      if (objectFailure(error) !== "outdated") throw error;
    }
  }

  /** Looks at the groups for a client that reads the batch, unless it has just looked. */
  async refresh({ batch }: Job): Promise<void> {
    if (batch.status === "in_progress") await this.#watch.refresh(this.#store.chunks(), this.#now());
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
    await this.#run.callWithRetry<GroupView | null>((stub) => stub.cancelGroup(seq));
  }

  /** Checks the whole input before anything of it starts. */
  async #validate(job: Job): Promise<Stepped> {
    const verdict = await this.#verdict(job);
    if (this.#stopped(job) === "cancelled") {
      // No line was accepted yet, so none is written to the files.
      job.feed.done = true;
      this.#store.putJob(job);
      return "more";
    }
    job.batch = verdict.ok
      ? startBatch(job.batch, verdict, this.#nowS)
      : failBatch(job.batch, verdict.errors, this.#nowS);
    this.#store.putJob(job);
    return "more";
  }

  /** Reads the input to its end, or until it is known to be invalid, or the batch is cancelled. */
  async #verdict(job: Job): Promise<BatchVerdict> {
    const { inputFileId: id, strict } = job.batch.request;
    const file = await runFilesOf(this.#objects, job.runId).file(id);
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

  /** The rules for lines: the run's present ones. */
  async #rules({ batch }: Job): Promise<LineRules> {
    const parsed = configOf(this.#objects);
    const rules = await this.#run.callWithRetry<ModelRulesReply>((run) => run.modelRules());
    const config = parsed.ok ? parsed.config : null;
    const own = (rules.ok ? rules.rules.defaultModel : null) ?? config?.defaultModel ?? null;
    // The same lines are read again after a crash, and must be as fit as before: so none of a message batch depends on the rules.
    const defaultModel = isMessageBatch(batch) ? null : own;
    const { endpoint } = batchEndpoint(batch.request.url);
    const serves = (model: string): boolean =>
      !rules.ok || config === null || targetOf(model, rules.rules, config, endpoint).ok;
    return { url: batch.request.url, defaultModel, serves };
  }

  async #feed(job: Job): Promise<Stepped> {
    // Every line was valid when the batch began; if the rules have changed since, the run refuses the line.
    const parsed = configOf(this.#objects);
    const { endpoint } = batchEndpoint(job.batch.request.url);
    const named = (model: string): string => (parsed.ok ? nameAtEndpoint(model, endpoint, parsed.config) : model);
    const rules = { ...(await this.#rules(job)), serves: () => true, named };
    const workflows = this.#workflows();
    const capacity = workflows === undefined ? null : WORKFLOW_CAPACITY;
    const fed = await feedChunk(this.#bucket, this.#run, job, { rules, capacity, now: this.#now });
    if (fed.kind === "refused" && fed.reason.reason === "overloaded") {
      await scheduler.wait(Math.min(fed.reason.retryAfterMs, BATCH_WAIT_MS));
      return "more";
    }
    if (fed.kind === "refused" && isOver(fed.reason)) return this.#cancelWithRun(job);
    const lines = noLines();
    const fail = (index: number, customId: string, reason: Reason): void =>
      addLine(job, { index, customId }, { kind: "failed", reason, requestId: "", upstreamBody: null }, lines);
    if (fed.kind === "refused")
      fed.customIds.forEach((customId, place) => fail(job.feed.index + place, customId, fed.reason));
    for (const { index, customId, reason } of fed.unfit) fail(index, customId, reason);
    job.feed = fed.feed;
    await this.#output.write(job, lines, () => {
      if (fed.kind === "opened") this.#store.putChunk(fed.chunk);
    });
    if (fed.kind !== "opened") return "more";
    // If a lane does not start, the run's alarm starts it.
    if (workflows === undefined) await startLanes(this.#objects, job.runId, fed.lanes);
    else await startWorkflow(workflows, this.#run, fed.chunk.seq);
    return "more";
  }

  /** What executes the groups of the batch; undefined = lanes do. */
  #workflows(): Workflows | undefined {
    const parsed = configOf(this.#objects);
    return parsed.ok && parsed.config.mayUseWorkflows ? this.#objects.WORKFLOW : undefined;
  }

  /** The run has ended, and its batch with it. */
  #cancelWithRun(job: Job): Stepped {
    const cancelled = cancelBatch(job.batch, this.#nowS);
    if (cancelled.ok) job.batch = cancelled.value;
    this.#store.putJob(job);
    return "more";
  }

  /** Writes the lines of a group that has ended, if one has. */
  async #collect(job: Job, chunks: readonly Chunk[]): Promise<Stepped> {
    const ended = await this.#watch.look(chunks, this.#now());
    if (ended !== null) return await this.#write(job, ended);
    // What was seen may have made room for further lines.
    if (this.#stopped(job) === null && !job.feed.done && this.#watch.hasRoom(chunks)) return "more";
    return "sleep";
  }

  async #write(job: Job, chunk: Chunk): Promise<Stepped> {
    const { seq } = chunk;
    while (chunk.nextIndex < chunk.count) {
      const from = chunk.nextIndex;
      const slots = await this.#run.callWithRetry<SlotView[]>((stub) => stub.results(seq, from));
      if (slots.length === 0) throw new Error(`group ${seq} of ${job.batch.id} does not exist in its run`);
      const lines = noLines();
      collectSlots(job, chunk, slots, lines);
      chunk.nextIndex += slots.length;
      // Emptied, because workerd keeps what a call returned until its next full collection.
      slots.length = 0;
      this.progress.written(chunk);
      await this.#output.write(job, lines, () => {
        if (chunk.nextIndex < chunk.count) this.#store.putChunk(chunk);
        else this.#store.dropChunk(chunk.no);
      });
    }
    this.#watch.forget(chunk);
    return "more";
  }

  /** Writes lines that will never run, up to a bound of bytes. */
  async #skipLines(job: Job, why: NotRun): Promise<Stepped> {
    const parsed = configOf(this.#objects);
    const { endpoint } = batchEndpoint(job.batch.request.url);
    const named = (model: string): string => (parsed.ok ? nameAtEndpoint(model, endpoint, parsed.config) : model);
    const rules = { ...(await this.#rules(job)), serves: () => true, named };
    const lines = noLines();
    const feed = { ...job.feed, done: true };
    let chars = 0;
    for await (const line of linesFrom(this.#bucket, job, job.feed)) {
      if (chars >= BATCH_TAIL_BYTES) {
        feed.done = false;
        break;
      }
      const read = readLine(line.bytes, rules);
      const customId = read.ok ? read.value.customId : (read.customId ?? "");
      addLine(job, { index: feed.index, customId }, { kind: "not_run", why }, lines);
      feed.start = line.end;
      feed.number = line.number;
      feed.index += 1;
      chars += customId.length + 200;
    }
    job.feed = feed;
    await this.#output.write(job, lines, () => undefined);
    return "more";
  }

  /** Completes the files and ends the batch. */
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
      await runFilesOf(this.#objects, runId).addFile(record);
      ids[file] = id;
    }
    const { counts, usage, status } = job.batch;
    const result = { counts, usage, outputFileId: ids["output"] ?? null, errorFileId: ids["error"] ?? null };
    // A cancel that arrived while the files were completed decides on the status, though nothing was left to stop.
    job.batch = endBatch(job.batch, status === "cancelling" ? "cancelled" : to, { result, nowS: this.#nowS });
    this.#store.putJob(job);
    return "ended";
  }
}

/** Whether a refusal means that the run takes no more calls. */
function isOver({ reason }: Reason): boolean {
  return reason === "invalid_api_key" || reason === "not_found" || reason === "cancelled";
}
