/**
 * One batch: an object that validates its input, feeds its run, writes its files and notifies the operator's webhook of
 * its end. It works in its alarm, which survives restarts; between two steps everything that matters is in its rows. Its
 * methods are described in src/objects/methods/batch-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { cancelBatch, isFinal, newBatch, startBatch, type Batch } from "../../src/batch/lifecycle.ts";
import type { Checked } from "../../src/batch/refusal.ts";
import { configOf } from "../../src/env.ts";
import { NOTHING_APPENDED } from "../../src/files/r2-append.ts";
import { BATCH_ALARM_MS, BATCH_LOOK_MS, BATCH_PROVIDER_LOOK_MS, BATCH_RETRY_MS } from "../../src/limits.ts";
import type { BatchApi, BatchOpening } from "../../src/objects/methods/batch-api.ts";
import { runFilesOf, type Objects } from "../../src/objects/address.ts";
import { alarmMs } from "../alarm-time.ts";
import { BatchStore, type Job } from "./store.ts";
import { notifyEnd } from "./webhook.ts";
import { BatchWork } from "./work.ts";

export class BatchObject extends DurableObject<Objects> implements BatchApi {
  readonly #store: BatchStore;
  /** One object shared by all methods and steps: a running step sees what a cancel changes. */
  #job: Job | null;
  #work: BatchWork | null = null;
  /** Whether the alarm is at work, which then looks once more if groups have moved: a second one would repeat its steps. */
  #isWorking = false;
  #hasMoved = false;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#store = new BatchStore(ctx.storage);
    this.#job = this.#store.job();
  }

  open({ id, runId, request, requestHash }: BatchOpening): { batch: Batch; replayed: boolean } | null {
    const known = this.#shown(runId);
    if (known !== null) return this.#job?.requestHash === requestHash ? { batch: known, replayed: true } : null;
    const file = () => ({ id: `file-${crypto.randomUUID().replaceAll("-", "")}`, state: NOTHING_APPENDED, bytes: 0 });
    const nowS = Math.floor(Date.now() / 1_000);
    const made = newBatch(id, request, nowS);
    const { input } = request;
    const job: Job = {
      // Lines that are checked already may run at once.
      batch: input === undefined ? made : startBatch(made, { total: input.requests, model: null }, nowS),
      runId,
      requestHash,
      inputBytes: input?.bytes ?? 0,
      feed: { start: 0, number: 1, index: 0, chunkNo: 0, done: false },
      files: { output: file(), error: file() },
      webhook: null,
    };
    this.#store.create();
    this.#store.putJob(job);
    this.#job = job;
    void this.#wakeIn(0);
    return { batch: job.batch, replayed: false };
  }

  async read(runId: string): Promise<Batch | null> {
    if (this.#job?.runId !== runId) return null;
    await this.#work?.refresh(this.#job);
    return this.#shown(runId);
  }

  groupsMoved(runId: string): void {
    const job = this.#job;
    if (job?.runId !== runId || isFinal(job.batch)) return;
    if (this.#isWorking) this.#hasMoved = true;
    else void this.#wakeIn(0);
  }

  #shown(runId: string): Batch | null {
    if (this.#job?.runId !== runId) return null;
    const { batch } = this.#job;
    // While a batch is being stopped, a line that has ended may still be discarded.
    const counts = batch.status === "in_progress" ? this.#work?.progress.countsWith(batch.counts) : undefined;
    return { ...batch, counts: counts ?? batch.counts };
  }

  stop(runId: string): Checked<Batch> | null {
    const job = this.#job;
    if (job?.runId !== runId) return null;
    const cancelled = cancelBatch(job.batch, Math.floor(Date.now() / 1_000));
    if (!cancelled.ok) return cancelled;
    job.batch = cancelled.value;
    this.#store.putJob(job);
    void this.#wakeIn(0);
    return { ok: true, value: job.batch };
  }

  async destroy(): Promise<void> {
    this.#job = null;
    await this.#store.destroy();
  }

  override async alarm(): Promise<void> {
    this.#isWorking = true;
    try {
      await this.#ring();
    } finally {
      this.#isWorking = false;
    }
  }

  async #ring(): Promise<void> {
    const untilMs = Date.now() + BATCH_ALARM_MS;
    try {
      for (let job = this.#job; job !== null && Date.now() < untilMs; job = this.#job) {
        this.#hasMoved = false;
        const stepped = await this.#workOf(job).step(job);
        if (stepped === "ended") return await this.#end(job);
        if (stepped === "sleep" && !this.#hasMoved) return await this.#sleep();
      }
      if (this.#job !== null) await this.#wakeIn(0);
    } catch (error) {
      console.error(`batch ${this.#job?.batch.id ?? ""} failed in a step; it will retry`, error);
      // The step may have left half of its changes in memory: the rows are consistent.
      this.#job = this.#store.job();
      this.#work = null;
      if (this.#job !== null) await this.#wakeIn(BATCH_RETRY_MS);
    }
  }

  /** Nothing is left to do until the run notifies of progress. A notification may be lost. */
  async #sleep(): Promise<void> {
    // A cancel that came meanwhile has set the alarm to now.
    if ((await this.ctx.storage.getAlarm()) !== null) return;
    // From here on a notification sets the alarm, later than this.
    this.#isWorking = false;
    const lookMs = this.#job?.batch.request.viaProvider === true ? BATCH_PROVIDER_LOOK_MS : BATCH_LOOK_MS;
    await this.#wakeIn(this.#hasMoved ? 0 : lookMs);
  }

  /** Sets the alarm. */
  #wakeIn(delayMs: number): Promise<void> {
    const nowMs = Date.now();
    return this.ctx.storage.setAlarm(alarmMs(nowMs + delayMs, nowMs));
  }

  #workOf(job: Job): BatchWork {
    const { FILES: bucket } = this.env;
    if (bucket === undefined)
      throw new Error("the R2 bucket is not bound as FILES any more; bind it for the batch to continue");
    this.#work ??= new BatchWork(this.#store, this.env, { bucket, runId: job.runId });
    return this.#work;
  }

  /** The batch has ended: notifies the run's file object and the operator's webhook, now or at the next alarm. */
  async #end(job: Job): Promise<void> {
    if (job.webhook === null) await runFilesOf(this.env, job.runId).batchEnded(job.batch.id);
    const delivery = await notifyEnd(configOf(this.env), job, Date.now());
    // Its client may have deleted it meanwhile.
    if (delivery === job.webhook || this.#job === null) return;
    job.webhook = delivery;
    this.#store.putJob(job);
    if (!delivery.done) await this.#wakeIn(delivery.atMs - Date.now());
  }
}
