/**
 * A provider's Message Batches as Anthropic defines them: requests are sent with the creation, and have no metadata. So the ids of requests
 * say whose they are, and a batch whose creation had no reply is known by its results.
 */
import { PROVIDER_CLOCK_MS, PROVIDER_FIND_PAGES_MAX } from "../../limits.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { anthropicErrorStatus } from "../../providers/formats/anthropic/error-type.ts";
import { keyAt } from "../../text/json/key.ts";
import { isRecord } from "../../text/json/record.ts";
import { member, scanObject, valueAtPath, type JsonMember } from "../../text/json/scan.ts";
import type { LostCreation, Provider, Requested } from "./batch-api.ts";
import { attemptOfMessageId, messagePrefix } from "./message-id.ts";
import type { BatchLook, Found } from "./next-step.ts";
import { idOf, linesOf, Requests, type ProviderDeps } from "./requests.ts";

const PATH = "/v1/messages/batches";

export function messageBatchesAt(upstream: Upstream, deps: ProviderDeps): Provider {
  const http = new Requests(upstream, deps);
  const at = (batchId: string, below = ""): string => `${PATH}/${encodeURIComponent(batchId)}${below}`;
  return {
    upload: () => Promise.reject(new Error("requests of a message batch are no file")),
    create: () => Promise.reject(new Error("a message batch is made of its requests")),
    createOf: async (requests) => idOf(await http.json("POST", PATH, `{"requests":[${requests.join(",")}]}`)),
    find: (tag, about) => find(http, tag, about),
    look: async (batchId) => {
      const got = await http.json("GET", at(batchId), null);
      if (!got.ok) return got.status === 404 ? { ok: true, value: { state: "gone" } } : got;
      return { ok: true, value: lookOf(got.value, batchId) };
    },
    cancel: async (batchId) => {
      const got = await http.json("POST", at(batchId, "/cancel"), null);
      // It has ended already. The next poll shows how.
      return got.ok || got.status === 400 || got.status === 409 ? { ok: true, value: null } : got;
    },
    lines: (batchId, tag) => resultsOf(http, batchId, tag),
  };
}

/** The newest batches first. One that ended with other results is another's; one that has not ended may be ours. */
async function find(http: Requests, tag: string, about: LostCreation): Promise<Requested<Found>> {
  let after = "";
  let isPending = false;
  for (let page = 0; page < PROVIDER_FIND_PAGES_MAX; page++) {
    const got = await http.json("GET", `${PATH}?limit=100${after}`, null);
    if (!got.ok) return got;
    const { data, has_more: hasMore, last_id: last } = isRecord(got.value) ? got.value : {};
    if (!Array.isArray(data)) return { ok: false, why: "later", retryAfterMs: null };
    const batches = data.filter(isRecord);
    for (const batch of batches.filter((each) => mayBe(each, about))) {
      const id = String(batch["id"]);
      if (batch["processing_status"] !== "ended") isPending = true;
      else {
        const own = await hasResultsOf(http, id, tag);
        if (!own.ok) return own;
        if (own.value) return { ok: true, value: id };
      }
    }
    const areOlder = batches.some((each) => createdMs(each) < about.createdAtMs - PROVIDER_CLOCK_MS);
    if (areOlder || hasMore !== true || typeof last !== "string") break;
    after = `&after_id=${encodeURIComponent(last)}`;
  }
  return { ok: true, value: isPending ? { pending: true } : null };
}

/** Whether a batch may be the one that was created then, with so many requests. */
function mayBe(batch: Record<string, unknown>, { createdAtMs, count, known }: LostCreation): boolean {
  const { id, request_counts: counts } = batch;
  if (typeof id !== "string" || known.has(id) || createdMs(batch) < createdAtMs - PROVIDER_CLOCK_MS) return false;
  return totalOf(counts) === count;
}

function createdMs({ created_at: at }: Record<string, unknown>): number {
  const ms = typeof at === "string" ? Date.parse(at) : Number.NaN;
  return Number.isNaN(ms) ? Infinity : ms;
}

/** All requests of a batch: the counts are of disjoint states. Null = they are no counts. */
function totalOf(counts: unknown): number | null {
  if (!isRecord(counts)) return null;
  return Object.values(counts).reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
}

async function hasResultsOf(http: Requests, batchId: string, tag: string): Promise<Requested<boolean>> {
  const got = await resultsOf(http, batchId, tag);
  if (!got.ok) return got;
  try {
    // Others' lines are left out.
    for await (const _ of got.value) return { ok: true, value: true };
    return { ok: true, value: false };
  } catch {
    return { ok: false, why: "later", retryAfterMs: null };
  }
}

function lookOf(batch: unknown, batchId: string): BatchLook {
  if (!isRecord(batch) || batch["processing_status"] !== "ended") return { state: "working" };
  // All requests are in the results, also those that it has not worked on.
  return { state: "ended", outputFileId: batchId, errorFileId: null, completed: totalOf(batch["request_counts"]) };
}

async function resultsOf(http: Requests, batchId: string, tag: string): Promise<Requested<AsyncIterable<string>>> {
  const got = await http.send("GET", `${PATH}/${encodeURIComponent(batchId)}/results`, null);
  return got.ok ? { ok: true, value: ownLines(linesOf(got.value), messagePrefix(tag)) } : got;
}

async function* ownLines(lines: AsyncIterable<string>, prefix: string): AsyncGenerator<string> {
  for await (const line of lines) {
    const own = ownLine(line, prefix);
    if (own !== null) yield own;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A result as a line of OpenAI's files, whose bodies are Anthropic's; null = it is another's, or no result. */
function ownLine(line: string, prefix: string): string | null {
  const bytes = encoder.encode(line);
  const scan = scanObject(bytes);
  if (!scan.ok) return null;
  const text = (found: JsonMember | null): string =>
    found?.kind === "text" ? keyAt(bytes, found.start + 1, found.end - 1) : "";
  const attemptId = attemptOfMessageId(text(member(scan.object, "custom_id")), prefix);
  if (attemptId === null) return null;
  const at = (...path: string[]): JsonMember | null => valueAtPath(bytes, scan.object, ["result", ...path]);
  const json = (found: JsonMember | null): string =>
    found === null ? "null" : decoder.decode(bytes.subarray(found.start, found.end));
  const answered = (status: number, body: string): string =>
    `{"custom_id":"${attemptId}","response":{"status_code":${status},"body":${body}},"error":null}`;
  const unsent = (code: string): string =>
    `{"custom_id":"${attemptId}","response":null,"error":{"code":"${code}","message":""}}`;
  switch (text(at("type"))) {
    case "succeeded":
      return answered(200, json(at("message")));
    case "errored":
      return answered(anthropicErrorStatus(text(at("error", "error", "type"))), json(at("error")));
    case "canceled":
      return unsent("batch_cancelled");
    case "expired":
      return unsent("batch_expired");
    default:
      // Of an unknown kind: it is not known whether it is billed.
      return unsent("unknown");
  }
}
