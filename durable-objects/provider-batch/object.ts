/**
 * Feeds the batches of one group's provider. It works in its alarm, which survives restarts, and sleeps between two polls. When
 * the last batch has ended, it deletes itself. Its methods are described in src/objects/methods/provider-batch.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import type { Part, ProviderJob } from "../../src/executors/provider-batch/part.ts";
import { providerAt } from "../../src/executors/provider-batch/provider.ts";
import { ProviderWork } from "../../src/executors/provider-batch/work.ts";
import { DEADLINE_MS_MAX, PROVIDER_ORPHAN_MS, PROVIDER_POLL_MS_DEFAULT, PROVIDER_RETRY_MS } from "../../src/limits.ts";
import type { ProviderBatchApi, ProviderClaim, ProviderGroup } from "../../src/objects/methods/provider-batch.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { underKey } from "../../src/providers/config/keys.ts";
import type { Upstream } from "../../src/providers/config/types.ts";
import type { Objects } from "../../src/objects/address.ts";
import { alarmMs } from "../alarm-time.ts";
import { refuseNewerRows } from "../schema-version.ts";

/** The keys of its storage: its job, and the run's latest notice, which the job does not contain yet. */
const JOB = "job";
const NOTICE = "notice";

type Notice = Parameters<ProviderBatchApi["notify"]>[0];

export class ProviderBatchObject extends DurableObject<Objects> implements ProviderBatchApi {
  #isWorking = false;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    refuseNewerRows(ctx.storage);
  }

  notify(notice: Notice): void {
    this.ctx.storage.kv.put(NOTICE, notice);
    // An alarm that is running reads the notice when it ends.
    if (this.#isWorking) return;
    const nowMs = Date.now();
    void this.ctx.storage.setAlarm(alarmMs(nowMs, nowMs));
  }

  override async alarm(): Promise<void> {
    const job = this.#jobNow(Date.now());
    if (job === null) return;
    this.#isWorking = true;
    const nextMs = await this.#ring(job);
    this.#isWorking = false;
    const { storage } = this.ctx;
    const nowMs = Date.now();
    if (storage.kv.get(NOTICE) !== undefined) await storage.setAlarm(alarmMs(nowMs, nowMs));
    else if (nextMs === null) await storage.deleteAll();
    else await storage.setAlarm(alarmMs(nextMs, nowMs));
  }

  /** Returns the time of the next step, epoch ms; null = no more steps. */
  async #ring(job: ProviderJob): Promise<number | null> {
    try {
      return await new ProviderWork(job, this.#depsOf(job)).ring();
    } catch (error) {
      if (Date.now() > job.about.deadlineAtMs + PROVIDER_ORPHAN_MS) return null;
      console.error(
        `a step of the provider's batches of group ${job.seq} of ${job.runId} failed and will be retried`,
        error,
      );
      return Date.now() + PROVIDER_RETRY_MS;
    }
  }

  /** The job, updated with the run's latest notice; null = there is no job. */
  #jobNow(nowMs: number): ProviderJob | null {
    const { kv } = this.ctx.storage;
    const job = kv.get<ProviderJob>(JOB) ?? null;
    const notice = kv.get<Notice>(NOTICE);
    if (notice === undefined) return job;
    const { runId, seq, stops: isStopped } = notice;
    // The reply to the first claim has the times.
    const farMs = nowMs + DEADLINE_MS_MAX;
    const unknown = { isStopped, liveAtMs: farMs, deadlineAtMs: farMs, pollMs: PROVIDER_POLL_MS_DEFAULT };
    const known = job ?? { runId, seq, about: unknown, nextPage: 1, claimAtMs: nowMs, parts: [] };
    const updated = { ...known, about: { ...known.about, isStopped }, claimAtMs: nowMs };
    kv.put(JOB, updated);
    kv.delete(NOTICE);
    return updated;
  }

  #depsOf({ runId, seq }: ProviderJob): ConstructorParameters<typeof ProviderWork>[1] {
    const run = new RunCaller(this.env, runId);
    return {
      claim: (page) => run.callWithRetry<ProviderClaim>((stub) => stub.claimProviderPage(seq, page)),
      settle: (settlement) => run.callWithRetry<ProviderGroup>((stub) => stub.settleProviderPage(seq, settlement)),
      upstreamOf: (part) => this.#upstreamOf(part),
      provider: (upstream) => providerAt(upstream, { fetch, now: Date.now, timeout: (ms) => AbortSignal.timeout(ms) }),
      now: Date.now,
      store: (changed) => this.ctx.storage.kv.put(JOB, changed),
    };
  }

  #upstreamOf({ upstream, key }: Pick<Part, "upstream" | "key">): Upstream | null {
    const parsed = configOf(this.env);
    const found = parsed.ok ? parsed.config.upstreams.find(({ name }) => name === upstream) : undefined;
    return found === undefined ? null : underKey(found, key);
  }
}
