/** A run of the gateway under test, used over HTTP like a client, in the Workers runtime. */
import { env, exports } from "cloudflare:workers";
import { expect } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { runIdOf } from "../../src/objects/address.ts";
import { openedRunDocument, runDocument, type BudgetDocument, type RunDocument } from "../../src/contract/runs.ts";
import { ADMIN_KEY } from "./object-vars.ts";
import type { Stats } from "./upstream-worker.ts";

const usage = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
  cost: z.number(),
});
const error = z.looseObject({ code: z.string(), message: z.string(), retryable: z.boolean() });

const queryReply = z.looseObject({
  text: z.string(),
  usage,
  attempts: z.number(),
  latency_ms: z.number(),
  queued_ms: z.number(),
  parallel_group_id: z.string().nullable(),
});
export type QueryAnswer = z.infer<typeof queryReply>;

const batchReply = z.looseObject({
  id: z.string().nullable(),
  status: z.string(),
  results: z.array(z.unknown()),
  errors: z.array(error.nullable()),
  items: z.array(
    z.looseObject({ status: z.string(), attempts: z.number(), estimated: z.boolean(), usage: usage.nullable() }),
  ),
  usage,
  metrics: z.looseObject({ wall_ms: z.number(), peak_parallel: z.number(), success_rate: z.number() }),
  effective_parallel: z.number(),
});
export type BatchAnswer = z.infer<typeof batchReply>;

const runList = z.object({ data: z.array(runDocument()), has_more: z.boolean(), next_cursor: z.string().nullable() });

/** What a `/query` ended as: its answer, or the HTTP error. */
export type QueryEnd = { status: number; answer: QueryAnswer | null; error: z.infer<typeof error> | null };

/** A fresh stub of a run's object. */
export function runObjectOf(runId: string): DurableObjectStub<RunObject> {
  return env.RUN.get(runIdOf(env.RUN, runId));
}

/** One run and its token. */
export class TestRun {
  readonly id: string;
  readonly #token: string;

  constructor(id: string, token: string) {
    this.id = id;
    this.#token = token;
  }

  /** A fresh stub of the run's object: one is broken after an error. */
  get object(): DurableObjectStub<RunObject> {
    return runObjectOf(this.id);
  }

  /** Sends a request with the run's token. */
  post(
    path: string,
    body: unknown,
    init: { signal?: AbortSignal; accept?: string; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const { signal, accept } = init;
    return exports.default.fetch(`http://fanout.test${path}`, {
      method: "POST",
      headers: {
        ...this.#headers(),
        "content-type": "application/json",
        ...(accept === undefined ? {} : { accept }),
        ...init.headers,
      },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Posts a body as it is written. */
  postStream(
    path: string,
    body: ReadableStream<Uint8Array>,
    contentType: string,
    more: Record<string, string> = {},
  ): Promise<Response> {
    const headers = { ...this.#headers(), "content-type": contentType, ...more };
    return exports.default.fetch(`http://fanout.test${path}`, { method: "POST", headers, body });
  }

  /** Posts a text as it is, with these headers. */
  sendText(path: string, body: string, headers: Record<string, string>): Promise<Response> {
    const init = { method: "POST", headers: { ...this.#headers(), ...headers }, body };
    return exports.default.fetch(`http://fanout.test${path}`, init);
  }

  /** Sends a request of any method with the run's token. */
  send(method: string, path: string, body?: unknown): Promise<Response> {
    return exports.default.fetch(`http://fanout.test${path}`, {
      method,
      headers: { ...this.#headers(), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Opens a child run with this run's token. */
  async openChild(request: Record<string, unknown> = {}): Promise<TestRun> {
    return openedBy(await this.post("/runs", request));
  }

  /** Posts to `/query` and returns the answer or the error. */
  async tryQuery(body: unknown): Promise<QueryEnd> {
    const response = await this.post("/query", body);
    const json: unknown = await response.json();
    if (response.ok) return { status: response.status, answer: queryReply.parse(json), error: null };
    return { status: response.status, answer: null, error: z.object({ error }).parse(json).error };
  }

  /** Posts to `/query` and expects success. */
  async query(body: unknown): Promise<QueryAnswer> {
    const end = await this.tryQuery(body);
    if (end.answer === null) throw new Error(`the query failed: ${JSON.stringify(end.error)}`);
    return end.answer;
  }

  /** Posts to `/batch` and expects it to be accepted. */
  async batch(body: unknown): Promise<BatchAnswer> {
    const response = await this.post("/batch", body);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`the batch was refused: ${text}`);
    return batchAnswerOf(JSON.parse(text));
  }

  async document(): Promise<RunDocument> {
    const response = await exports.default.fetch("http://fanout.test/run", { headers: this.#headers() });
    return runDocument().parse(await response.json());
  }

  async budget(): Promise<BudgetDocument> {
    return (await this.document()).budget;
  }

  #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#token}` };
  }
}

/** A group that has ended, as `POST /batch` and `GET /groups/:id` answer with it. */
export function batchAnswerOf(json: unknown): BatchAnswer {
  return batchReply.parse(json);
}

/** Opens a run as the operator. */
export async function openRun(request: Record<string, unknown> = {}): Promise<TestRun> {
  return openedBy(await asOperator("POST", "/runs", request));
}

/** Sends a request with the operator's key. */
export function asOperator(method: string, path: string, body?: unknown): Promise<Response> {
  return exports.default.fetch(`http://fanout.test${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** The run that a `POST /runs` has opened. */
export async function openedBy(response: Response): Promise<TestRun> {
  if (response.status !== 201) throw new Error(`no run was opened: ${await response.text()}`);
  const opened = openedRunDocument().parse(await response.json());
  return new TestRun(opened.id, opened.token);
}

/** Sends `GET /runs` as the operator. */
export function requestRuns(query: string): Promise<Response> {
  return exports.default.fetch(`http://fanout.test/runs?${query}`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
}

/** A page of `GET /runs`. */
export async function listRuns(query: string): Promise<{ ids: string[]; hasMore: boolean; cursor: string | null }> {
  const response = await requestRuns(query);
  const { data, has_more: hasMore, next_cursor: cursor } = runList.parse(await response.json());
  return { ids: data.map(({ id }) => id), hasMore, cursor };
}

/** What the upstream saw under a key. */
export async function upstreamStats(key: string, host = "upstream.test"): Promise<Stats> {
  return (await fetch(`http://${host}/stats?key=${key}`)).json();
}

/** Has the upstream forget what it has seen, and close its latches. */
export async function resetUpstream(): Promise<void> {
  await fetch("http://upstream.test/reset", { method: "POST" });
}

/** Lets the upstream answer the calls that wait at a latch, and those that come to it later. */
export async function openLatch(name: string, host = "upstream.test"): Promise<void> {
  await fetch(`http://${host}/open?latch=${name}`, { method: "POST" });
}

/** Has the upstream answer the calls that have waited longest at a latch; the others wait on. */
export async function letThrough(latch: string, calls: number, host = "upstream.test"): Promise<void> {
  await fetch(`http://${host}/open?latch=${latch}&calls=${calls}`, { method: "POST" });
}

/** Waits until the upstream has that many calls of a key in flight. */
export async function untilInFlight(key: string, count: number): Promise<void> {
  await expect.poll(async () => (await upstreamStats(key)).inFlight, { interval: 10 }).toBe(count);
}

/** Distinct prompts, numbered from 0. */
export function prompts(count: number, word = "question"): string[] {
  return Array.from({ length: count }, (_, index) => `${word} ${index}`);
}

/** Nothing is reserved, and what is spent is what `cost` says, in USD. Call it when nothing of the run is in flight. */
export function expectSettled(budget: BudgetDocument, costUsd: number): void {
  for (const line of Object.values(budget)) {
    expect(line.reserved).toBe(0);
    if (line.limit !== null) expect(line.spent).toBeLessThanOrEqual(line.limit);
  }
  expect(budget.usd.spent).toBeCloseTo(costUsd, 9);
}

/** Every slot has completed, with these results. */
export function expectWhole(answer: BatchAnswer, results: string[]): void {
  expect(answer.status).toBe("completed");
  expect(answer.results).toEqual(results);
  expect(answer.items.every(({ status }) => status === "completed")).toBe(true);
}
