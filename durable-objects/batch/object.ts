/**
 * One batch: an object that validates its input, feeds its run, writes its files and tells its end. It works in its
 * alarm, which survives restarts; between two steps everything that matters is in its rows.
 */
import { DurableObject } from "cloudflare:workers";
import type { BatchRequest } from "../../src/batch/create.ts";
import { batchDocument, type BatchDocument } from "../../src/batch/document.ts";
import { cancelBatch, newBatch } from "../../src/batch/lifecycle.ts";
import type { Checked } from "../../src/batch/refusal.ts";
import { configOf } from "../../src/env.ts";
import { BATCH_AGAIN_MS, BATCH_ALARM_MS } from "../../src/limits.ts";
import { NOTHING_APPENDED } from "../../src/files/r2-append.ts";
import { shelfOf, type Objects } from "../address.ts";
import { BatchStore, type Job } from "./store.ts";
import { tellEnd } from "./webhook.ts";
import { BatchWork } from "./work.ts";

/** What a batch is created with. */
export type BatchOpening = { id: string; runId: string; request: BatchRequest; requestHash: string };

export class BatchObject extends DurableObject<Objects> {
  readonly #store: BatchStore;
  /** One object for all who work on the batch: what a cancel changes, the step at work sees. */
  #job: Job | null;
  #work: BatchWork | null = null;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#store = new BatchStore(ctx.storage);
    this.#job = this.#store.job();
  }

  /** Creates the batch. The same request again finds it; null for another request under the same id. */
  create({ id, runId, request, requestHash }: BatchOpening): { document: BatchDocument; replayed: boolean } | null {
    const known = this.document();
    if (known !== null) return this.#job?.requestHash === requestHash ? { document: known, replayed: true } : null;
    const file = () => ({ id: `file-${crypto.randomUUID().replaceAll("-", "")}`, state: NOTHING_APPENDED, bytes: 0 });
    const job: Job = {
      batch: newBatch(id, request, Math.floor(Date.now() / 1_000)),
      runId,
      requestHash,
      inputBytes: 0,
      feed: { start: 0, number: 1, index: 0, chunkNo: 0, done: false },
      files: { output: file(), error: file() },
      webhook: null,
    };
    this.#store.create();
    this.#store.putJob(job);
    this.#job = job;
    void this.ctx.storage.setAlarm(Date.now());
    return { document: batchDocument(job.batch), replayed: false };
  }

  /** The batch as it stands; null for no such batch. */
  document(): BatchDocument | null {
    if (this.#job === null) return null;
    const { batch } = this.#job;
    // What ends while the batch is being stopped may turn out not to count.
    const counts = batch.status === "in_progress" ? this.#work?.progress.over(batch.counts) : undefined;
    return batchDocument({ ...batch, counts: counts ?? batch.counts });
  }

  /** Asks the batch to stop; null for no such batch. */
  cancel(): Checked<BatchDocument> | null {
    const job = this.#job;
    if (job === null) return null;
    const cancelled = cancelBatch(job.batch, Math.floor(Date.now() / 1_000));
    if (!cancelled.ok) return cancelled;
    job.batch = cancelled.value;
    this.#store.putJob(job);
    void this.ctx.storage.setAlarm(Date.now());
    return { ok: true, value: batchDocument(job.batch) };
  }

  /** Leaves nothing of the batch: its run is deleted. */
  async destroy(): Promise<void> {
    this.#job = null;
    await this.#store.destroy();
  }

  override async alarm(): Promise<void> {
    const untilMs = Date.now() + BATCH_ALARM_MS;
    try {
      for (let job = this.#job; job !== null && Date.now() < untilMs; job = this.#job) {
        if ((await this.#workOf(job).step(job)) === "again") continue;
        await this.#end(job);
        return;
      }
      if (this.#job !== null) await this.ctx.storage.setAlarm(Date.now());
    } catch (error) {
      console.error(`batch ${this.#job?.batch.id ?? ""} met an error and goes on in a while`, error);
      // What the step had in memory may be half of it: the rows are right.
      this.#job = this.#store.job();
      this.#work = null;
      if (this.#job !== null) await this.ctx.storage.setAlarm(Date.now() + BATCH_AGAIN_MS);
    }
  }

  #workOf(job: Job): BatchWork {
    const { FILES: bucket } = this.env;
    if (bucket === undefined) throw new Error("the R2 bucket is not bound as FILES any more");
    this.#work ??= new BatchWork(this.#store, this.env, { bucket, runId: job.runId });
    return this.#work;
  }

  /** The batch is over: whoever is to be told is told, now or at the next alarm. */
  async #end(job: Job): Promise<void> {
    if (job.webhook === null) await shelfOf(this.env, job.runId).batchEnded(job.batch.id);
    const delivery = await tellEnd(configOf(this.env), job, Date.now());
    if (delivery === job.webhook) return;
    job.webhook = delivery;
    this.#store.putJob(job);
    if (!delivery.done) await this.ctx.storage.setAlarm(delivery.atMs);
  }
}
