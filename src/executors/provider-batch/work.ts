/**
 * Feeds the batches of one group's provider: claims calls page by page, makes a batch of each page, polls it until it ends, and
 * settles its results. Between two steps everything that matters is in the job, which is stored before a request whose
 * repetition would cost money. A step that throws is retried from the stored job.
 */
import type { PageRest } from "../../run/steps/provider-settle.ts";
import { batchUrl } from "../../batch/endpoints.ts";
import { BATCH_ALARM_MS, PROVIDER_BATCHES_OPEN_MAX } from "../../limits.ts";
import type { ProviderClaim, ProviderGroup, ProviderSettlement } from "../../objects/methods/provider-batch.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { afterFailure, afterFind, afterLook, created, dueMs, nextStep, restOf, type After } from "./next-step.ts";
import { decidesReading, lineOf, rawEndpointOf, Reading, type Page } from "./lines.ts";
import { newPart, tagOf, type BatchEnd, type Part, type ProviderJob } from "./part.ts";
import type { Provider, Requested } from "./batch-api.ts";

export type WorkDeps = {
  claim: (page: number) => Promise<ProviderClaim>;
  settle: (settlement: ProviderSettlement) => Promise<ProviderGroup>;
  /** The upstream of a batch, under its key; null = it is not configured any more. */
  upstreamOf: (part: Pick<Part, "upstream" | "key">) => Upstream | null;
  provider: (upstream: Upstream) => Provider;
  now: () => number;
  /** Stores the job; it is durable before anything is sent after that. */
  store: (job: ProviderJob) => void;
};

export class ProviderWork {
  readonly #deps: WorkDeps;
  #job: ProviderJob;
  /** The page that was claimed last: its upload needs the calls, and a restart claims them again. */
  #claimed: { page: number; calls: Page } | null = null;

  constructor(job: ProviderJob, deps: WorkDeps) {
    this.#job = job;
    this.#deps = deps;
  }

  /** Does all steps that are due. Returns the time of the next one, epoch ms; null = the work has ended. */
  async ring(): Promise<number | null> {
    const untilMs = this.#deps.now() + BATCH_ALARM_MS;
    await this.#claimDue(untilMs);
    for (const { page } of this.#job.parts) {
      let moved = true;
      while (moved && this.#deps.now() < untilMs) moved = await this.#step(page);
    }
    const { parts, claimAtMs, about } = this.#job;
    const times = parts.map((part) => dueMs(part, about));
    if (claimAtMs !== null) times.push(claimAtMs);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Claims pages that are due, and uploads each before the next, so that one is in memory at a time. */
  async #claimDue(untilMs: number): Promise<void> {
    const { now, claim } = this.#deps;
    while (now() < untilMs) {
      const { claimAtMs, parts, nextPage: page, about } = this.#job;
      if (claimAtMs === null || now() < claimAtMs) return;
      if (parts.length >= PROVIDER_BATCHES_OPEN_MAX) return this.#put({ claimAtMs: now() + about.pollMs });
      const claimed = await claim(page);
      const { isStopped, liveAtMs, deadlineAtMs, pollMs } = claimed;
      this.#put({ about: { isStopped, liveAtMs, deadlineAtMs, pollMs } });
      if (claimed.kind !== "page") return this.#put({ claimAtMs: claimed.kind === "later" ? now() + pollMs : null });
      const [first] = claimed.jobs;
      // All of its calls have ended: the page was claimed before a restart.
      if (first === undefined) {
        this.#put({ nextPage: page + 1 });
        continue;
      }
      const { upstream, key, model } = first.lease;
      const hasSchemas = claimed.jobs.some((job) => decidesReading(job, claimed.defaultsJson));
      const endpoint = rawEndpointOf(first, claimed.defaultsJson);
      const keyed = { ...(key === undefined ? {} : { key }), ...(endpoint === null ? {} : { endpoint }) };
      const part = newPart({ page, upstream, model, hasSchemas, ...keyed }, now());
      this.#put({ nextPage: page + 1, parts: [...parts, part] });
      this.#claimed = { page, calls: claimed };
      await this.#step(page);
      this.#claimed = null;
    }
  }

  /** Makes the next step of a batch. False: it waits, or has ended. */
  async #step(page: number): Promise<boolean> {
    const part = this.#job.parts.find((each) => each.page === page);
    if (part === undefined) return false;
    const step = nextStep(part, this.#job.about, this.#deps.now());
    if (step.do === "wait") return false;
    const after = step.do === "end" ? { rest: step.rest, releases: false } : await this.#do(step.do, part);
    if ("part" in after) {
      this.#putPart(after.part);
      return true;
    }
    await this.#end(page, after.rest, after.releases);
    return false;
  }

  async #do(step: "upload" | "create" | "find" | "look" | "cancel" | "read", part: Part): Promise<After> {
    const upstream = this.#deps.upstreamOf(part);
    if (upstream === null) return { rest: part.createdAtMs === null ? "unsent" : "lost", releases: true };
    const provider = this.#deps.provider(upstream);
    switch (step) {
      case "upload":
        return this.#upload(part, upstream, provider);
      case "create": {
        const { fileId, endpoint } = part;
        const url = batchUrl(endpoint ?? "chat");
        const create = () => provider.create(fileId ?? "", url, tagOf(this.#job, part));
        return this.#create({ ...part, createdAtMs: this.#deps.now() }, upstream, create);
      }
      case "find":
        return this.#find(part, upstream, provider);
      case "look":
        return this.#look(part, upstream, provider);
      case "cancel":
        return this.#cancel(part, provider);
      case "read":
        return this.#read(part, { ...part, end: part.end ?? NO_FILES }, upstream, provider);
    }
  }

  /** A file that is uploaded twice costs nothing: no batch is made of the first. */
  async #upload(part: Part, upstream: Upstream, provider: Provider): Promise<After> {
    const calls = await this.#callsOf(part.page);
    if (calls === null) return { part: afterFailure(part, null, this.#deps.now()) };
    if (calls.jobs.length === 0) return { rest: "unsent", releases: false };
    const about = { defaultsJson: calls.defaultsJson, upstream, tag: tagOf(this.#job, part) };
    const lines: string[] = [];
    for (const job of calls.jobs) {
      const line = lineOf(job, about);
      // Sent live, each gets the reason.
      if (line === null) return { rest: "unsent", releases: true };
      lines.push(line);
    }
    const { createOf } = provider;
    if (createOf !== undefined) {
      const intended = { ...part, createdAtMs: this.#deps.now(), count: lines.length };
      return this.#create(intended, upstream, () => createOf(lines));
    }
    const uploaded = await provider.upload(lines.join(""));
    if (uploaded.ok) return { part: { ...part, fileId: uploaded.value, failures: 0 } };
    return this.#failed(part, uploaded);
  }

  async #create(intended: Part, upstream: Upstream, create: () => Promise<Requested<string>>): Promise<After> {
    const { now } = this.#deps;
    // If the reply is lost, the batch is found by its tag.
    this.#putPart(intended);
    const made = await create();
    if (made.ok) return { part: created(intended, made.value, this.#aboutAt(upstream), now()) };
    return made.why === "unknown"
      ? { part: afterFailure(intended, made.retryAfterMs, now()) }
      : this.#failed({ ...intended, createdAtMs: null }, made);
  }

  async #find(part: Part, upstream: Upstream, provider: Provider): Promise<After> {
    const { now } = this.#deps;
    const known = new Set(this.#job.parts.flatMap(({ batchId }) => batchId ?? []));
    const about = { createdAtMs: part.createdAtMs ?? now(), count: part.count ?? 0, known };
    const found = await provider.find(tagOf(this.#job, part), about);
    if (!found.ok) return { part: afterFailure(part, found.retryAfterMs, now()) };
    return { part: afterFind(part, found.value, this.#aboutAt(upstream), now()) };
  }

  async #look(part: Part, upstream: Upstream, provider: Provider): Promise<After> {
    const { now } = this.#deps;
    const looked = await provider.look(part.batchId ?? "");
    if (!looked.ok) return { part: afterFailure(part, looked.retryAfterMs, now()) };
    return afterLook(part, looked.value, this.#aboutAt(upstream), now());
  }

  async #cancel(part: Part, provider: Provider): Promise<After> {
    const { now } = this.#deps;
    const cancelled = await provider.cancel(part.batchId ?? "");
    if (!cancelled.ok) return { part: afterFailure(part, cancelled.retryAfterMs, now()) };
    return { part: { ...part, cancelledAtMs: now(), failures: 0, dueAtMs: now() } };
  }

  /** Settles the results in the files of an ended batch. After a failure it reads them again from the beginning: calls settle once. */
  async #read(part: Part, { end }: { end: BatchEnd }, upstream: Upstream, provider: Provider): Promise<After> {
    const { now } = this.#deps;
    const calls = part.hasSchemas ? await this.#callsOf(part.page) : NO_CALLS;
    if (calls === null) return { part: afterFailure(part, null, now()) };
    const { model, endpoint } = part;
    const reading = new Reading(this.#job.seq, { upstream, model, calls, now, ...(endpoint && { endpoint }) });
    const answered = new Set<number>();
    for (const fileId of [end.outputFileId, end.errorFileId]) {
      if (fileId === null) continue;
      const file = await provider.lines(fileId, tagOf(this.#job, part));
      if (!file.ok) return { part: afterFailure(part, file.retryAfterMs, now()) };
      try {
        for await (const line of file.value) {
          const index = reading.add(line);
          if (index !== null && fileId === end.outputFileId) answered.add(index);
          if (reading.isFull) await this.#settle({ page: part.page, answers: reading.take(), rest: null });
        }
      } catch {
        // The file broke off, or the run restarts.
        return { part: afterFailure(part, null, now()) };
      }
    }
    await this.#settle({ page: part.page, answers: reading.take(), rest: null });
    return { rest: restOf(end, answered.size), releases: false };
  }

  /** The group as the batches at one upstream see it: calls of one group may go to several, each polled at its own pace. */
  #aboutAt({ batch }: Upstream): ProviderGroup {
    const { about } = this.#job;
    return batch === undefined ? about : { ...about, pollMs: batch.pollMs };
  }

  #failed(part: Part, { why, retryAfterMs }: Extract<Requested<unknown>, { ok: false }>): After {
    // The next batch would be refused for the same reason.
    if (why === "refused") return { rest: "unsent", releases: true };
    return { part: afterFailure(part, retryAfterMs, this.#deps.now()) };
  }

  /** The calls of a page that have not ended; null = they are not available now. */
  async #callsOf(page: number): Promise<Page | null> {
    if (this.#claimed?.page === page) return this.#claimed.calls;
    const claimed = await this.#deps.claim(page);
    return claimed.kind === "page" ? claimed : claimed.kind === "none" ? NO_CALLS : null;
  }

  async #end(page: number, rest: PageRest, releases: boolean): Promise<void> {
    await this.#settle({ page, answers: [], rest, ...(releases && { releases: true as const }) });
    this.#put({ parts: this.#job.parts.filter((part) => part.page !== page) });
  }

  async #settle(settlement: ProviderSettlement): Promise<void> {
    if (settlement.answers.length === 0 && settlement.rest === null) return;
    const { isStopped, liveAtMs, deadlineAtMs, pollMs } = await this.#deps.settle(settlement);
    this.#put({ about: { isStopped, liveAtMs, deadlineAtMs, pollMs } });
  }

  #putPart(part: Part): void {
    this.#put({ parts: this.#job.parts.map((each) => (each.page === part.page ? part : each)) });
  }

  #put(changed: Partial<ProviderJob>): void {
    this.#job = { ...this.#job, ...changed };
    this.#deps.store(this.#job);
  }
}

const NO_FILES: BatchEnd = { outputFileId: null, errorFileId: null, completed: null };
const NO_CALLS: Page = {
  kind: "page",
  jobs: [],
  defaultsJson: "{}",
  isStopped: false,
  liveAtMs: 0,
  deadlineAtMs: 0,
  pollMs: 0,
};
