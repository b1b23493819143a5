/**
 * A provider's Batch API in virtual time that behaves by a seed: prompt, slow, full, forgetful, with requests that fail and
 * replies that are lost. It counts what it bills. Beside it `crashes`, by which the work on its batches stops between two steps.
 */
import type { BatchLook } from "../../src/executors/provider-batch/next-step.ts";
import type { Provider, Requested } from "../../src/executors/provider-batch/batch-api.ts";
import { seeded } from "./engine.ts";

/** How long a provider works on a batch that it completes, and how it fails. `never`: only a cancellation ends it. */
export const BEHAVIOURS = [
  "prompt",
  "late",
  "never",
  "partial",
  "expires",
  "invalid",
  "full",
  "vanishes",
  "refuses",
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

type Line = { customId: string };
type Batch = {
  id: string;
  tag: string;
  lines: Line[];
  createdAtMs: number;
  /** When it ends, epoch ms, and how. */
  endsAtMs: number;
  state: "completed" | "expired" | "failed" | "gone";
  worked: number;
  cancelledAtMs: number | null;
};

const MINUTE_MS = 60_000;
/** Tokens of each answer: a prompt of as many, and a completion. */
export const TOKENS_EACH = 100;

export class BehavingProvider implements Provider {
  readonly batches: Batch[] = [];
  /** Answers that it bills at its batch price. */
  billed = 0;
  readonly #behaviour: Behaviour;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #files = new Map<string, string[]>();
  /** Which of the requests that may fail do: in a share of this. */
  readonly #trouble: number;
  #creations = 0;

  constructor(behaviour: Behaviour, seed: number, now: () => number) {
    this.#behaviour = behaviour;
    this.#random = seeded(seed);
    this.#now = now;
    this.#trouble = seed % 3 === 0 ? 0 : 0.15;
  }

  upload(text: string): Promise<Requested<string>> {
    if (this.#behaviour === "refuses") return Promise.resolve(refused);
    return this.#mayFail(() => this.#keep(text.split("\n").filter((line) => line !== "")));
  }

  create(fileId: string, _url: string, tag: string): Promise<Requested<string>> {
    this.#creations += 1;
    const isFull = this.#behaviour === "full" && this.#creations <= 2;
    if (this.#fails()) return Promise.resolve(later(this.#random() < 0.5 ? 30_000 : null));
    // Half of those whose reply is lost have arrived.
    if (this.#fails() && this.#random() < 0.5) return Promise.resolve(unknown);
    const lines = (this.#files.get(fileId) ?? []).map((line) => ({ customId: String(JSON.parse(line).custom_id) }));
    const batch = this.#batchOf(lines, tag, isFull);
    this.batches.push(batch);
    return Promise.resolve(this.#fails() ? unknown : { ok: true, value: batch.id });
  }

  find(tag: string): Promise<Requested<string | null>> {
    return this.#mayFail(() => this.batches.find((each) => each.tag === tag)?.id ?? null);
  }

  look(batchId: string): Promise<Requested<BatchLook>> {
    return this.#mayFail(() => this.#seen(this.batches.find(({ id }) => id === batchId)));
  }

  cancel(batchId: string): Promise<Requested<null>> {
    return this.#mayFail(() => {
      const batch = this.batches.find(({ id }) => id === batchId);
      if (batch !== undefined) batch.cancelledAtMs ??= this.#now();
      return null;
    });
  }

  lines(fileId: string): Promise<Requested<AsyncIterable<string>>> {
    const breaksOff = this.#fails();
    const lines = this.#files.get(fileId) ?? [];
    return this.#mayFail(async function* () {
      for (const [at, line] of lines.entries()) {
        if (breaksOff && at * 2 > lines.length) throw new Error("the connection broke");
        yield await Promise.resolve(line);
      }
    });
  }

  #fails(): boolean {
    return this.#random() < this.#trouble;
  }

  #mayFail<Value>(value: () => Value): Promise<Requested<Value>> {
    return Promise.resolve(this.#fails() ? later(null) : { ok: true, value: value() });
  }

  #batchOf(lines: Line[], tag: string, isFull: boolean): Batch {
    const createdAtMs = this.#now();
    const end = (minutes: number, state: Batch["state"], share = 1) => ({
      endsAtMs: createdAtMs + minutes * MINUTE_MS,
      state,
      worked: Math.floor(lines.length * share),
    });
    const by: Record<Behaviour, ReturnType<typeof end>> = {
      prompt: end(2 + this.#random() * 15, "completed"),
      late: end(30 + this.#random() * 60, "completed"),
      never: end(Infinity, "completed", 0),
      partial: end(Infinity, "completed", this.#random()),
      expires: end(1 + this.#random() * 20, "expired", this.#random()),
      invalid: end(1, "failed", 0),
      full: isFull ? end(1, "failed", 0) : end(3, "completed"),
      vanishes: end(1 + this.#random() * 10, "gone", 0),
      refuses: end(0, "failed", 0),
    };
    const id = `batch_${this.batches.length + 1}`;
    return { id, tag, lines, createdAtMs, cancelledAtMs: null, ...by[this.#behaviour] };
  }

  #seen(batch: Batch | undefined): BatchLook {
    if (batch === undefined) return { state: "gone" };
    const nowMs = this.#now();
    // A cancellation takes up to ten minutes.
    const cancelledMs = batch.cancelledAtMs === null ? Infinity : batch.cancelledAtMs + this.#random() * 10 * MINUTE_MS;
    if (nowMs < Math.min(batch.endsAtMs, cancelledMs)) return { state: "working" };
    if (batch.state === "gone" && batch.endsAtMs <= nowMs) return { state: "gone" };
    if (batch.state === "failed") return { state: "failed", isFull: this.#behaviour === "full" };
    // What it has worked on when it was cancelled half way.
    const share = (nowMs - batch.createdAtMs) / (batch.endsAtMs - batch.createdAtMs);
    const worked = batch.endsAtMs <= nowMs ? batch.worked : Math.floor(batch.worked * Math.max(0, Math.min(1, share)));
    return this.#ended(batch, batch.endsAtMs === Infinity ? batch.worked : worked);
  }

  #ended({ lines }: Batch, worked: number): BatchLook {
    const done = lines.slice(0, worked);
    this.billed += done.length;
    const output = done.map(({ customId }) => answered(customId)).toReversed();
    // A line twice, and one of another batch.
    if (this.#trouble > 0 && output[0] !== undefined) output.push(output[0], answered("999999999.1"), "no JSON");
    const errors = lines.slice(worked).map(({ customId }) => expired(customId));
    return {
      state: "ended",
      outputFileId: output.length === 0 ? null : this.#keep(output),
      // Some providers write nothing of what they have not worked on.
      errorFileId: this.#trouble > 0 && this.#random() < 0.5 ? null : this.#keep(errors),
      completed: done.length,
    };
  }

  #keep(lines: string[]): string {
    const id = `file-${this.#files.size + 1}`;
    this.#files.set(id, lines);
    return id;
  }
}

const refused = { ok: false, why: "refused", retryAfterMs: null } as const;
const unknown = { ok: false, why: "unknown", retryAfterMs: null } as const;
const later = (retryAfterMs: number | null) => ({ ok: false, why: "later", retryAfterMs }) as const;

function answered(customId: string): string {
  const choices = [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }];
  const usage = { prompt_tokens: TOKENS_EACH, completion_tokens: TOKENS_EACH, total_tokens: 2 * TOKENS_EACH };
  const body = { object: "chat.completion", model: "gpt-x", choices, usage, service_tier: "default" };
  return JSON.stringify({ custom_id: customId, response: { status_code: 200, body }, error: null });
}

function expired(customId: string): string {
  return JSON.stringify({ custom_id: customId, response: null, error: { code: "batch_expired", message: "not run" } });
}
