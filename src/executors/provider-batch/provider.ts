/** A provider's Batch API as OpenAI defines it (files, batches), and the table of the forms that such an API has. */
import { isRecord } from "../../text/json/record.ts";
import { PROVIDER_FIND_PAGES_MAX } from "../../limits.ts";
import type { Upstream } from "../../providers/config/types.ts";
import type { BatchForm } from "../../providers/kinds/kind.ts";
import { kindOf } from "../../providers/kinds/table.ts";
import type { Provider, Requested } from "./batch-api.ts";
import { messageBatchesAt } from "./message-batches.ts";
import type { BatchLook } from "./next-step.ts";
import { idOf, linesOf, Requests, type ProviderDeps } from "./requests.ts";

const FORMS: Readonly<Record<BatchForm, (upstream: Upstream, deps: ProviderDeps) => Provider>> = {
  files: filesAt,
  messages: messageBatchesAt,
};

/** The batch API of an upstream. Throws for one of a kind that has none: no call of it goes into a batch. */
export function providerAt(upstream: Upstream, deps: ProviderDeps): Provider {
  const { batches } = kindOf(upstream);
  if (batches === null) throw new Error(`${upstream.name} has no batches`);
  return FORMS[batches](upstream, deps);
}

/** The key of the metadata that has the tag of a batch. */
const TAG = "fanout";

/** States in which a batch is at work; in others it has ended. An unknown state counts as ended. */
const ENDED: ReadonlySet<string> = new Set(["completed", "expired", "cancelled"]);

function filesAt(upstream: Upstream, deps: ProviderDeps): Provider {
  const http = new Requests(upstream, deps);
  return {
    upload: async (lines) => {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new Blob([lines], { type: "application/jsonl" }), "fanout.jsonl");
      return idOf(await http.json("POST", "/files", form));
    },
    create: async (fileId, url, tag) => {
      const metadata = { [TAG]: tag };
      const body = { input_file_id: fileId, endpoint: url, completion_window: "24h", metadata };
      return idOf(await http.json("POST", "/batches", JSON.stringify(body)));
    },
    find: (tag) => find(http, tag),
    look: async (batchId) => {
      const got = await http.json("GET", `/batches/${encodeURIComponent(batchId)}`, null);
      if (!got.ok) return got.status === 404 ? { ok: true, value: { state: "gone" } } : got;
      return { ok: true, value: lookOf(got.value) };
    },
    cancel: async (batchId) => {
      const got = await http.json("POST", `/batches/${encodeURIComponent(batchId)}/cancel`, null);
      // 409: it has ended already. The next poll shows how.
      return got.ok || got.status === 409 ? { ok: true, value: null } : got;
    },
    lines: async (fileId) => {
      const got = await http.send("GET", `/files/${encodeURIComponent(fileId)}/content`, null);
      return got.ok ? { ok: true, value: linesOf(got.value) } : got;
    },
  };
}

async function find(http: Requests, tag: string): Promise<Requested<string | null>> {
  let after = "";
  for (let page = 0; page < PROVIDER_FIND_PAGES_MAX; page++) {
    const got = await http.json("GET", `/batches?limit=100${after}`, null);
    if (!got.ok) return got;
    const { data, has_more: hasMore } = isRecord(got.value) ? got.value : {};
    if (!Array.isArray(data)) return { ok: false, why: "later", retryAfterMs: null };
    const found = data.find(
      (batch: unknown) => isRecord(batch) && isRecord(batch["metadata"]) && batch["metadata"][TAG] === tag,
    );
    if (isRecord(found) && typeof found["id"] === "string") return { ok: true, value: found["id"] };
    const last: unknown = data.at(-1);
    if (hasMore !== true || !isRecord(last) || typeof last["id"] !== "string") break;
    after = `&after=${encodeURIComponent(last["id"])}`;
  }
  return { ok: true, value: null };
}

function lookOf(batch: unknown): BatchLook {
  if (!isRecord(batch) || typeof batch["status"] !== "string") return { state: "working" };
  const { status, errors, request_counts: counts } = batch;
  if (status === "failed") return { state: "failed", isFull: isFull(errors) };
  if (!ENDED.has(status)) return { state: "working" };
  const file = (name: string): string | null => {
    const id = batch[name];
    return typeof id === "string" && id !== "" ? id : null;
  };
  const completed = isRecord(counts) && typeof counts["completed"] === "number" ? counts["completed"] : null;
  return { state: "ended", outputFileId: file("output_file_id"), errorFileId: file("error_file_id"), completed };
}

/** Whether a batch was refused because the key has too many tokens enqueued already (`token_limit_exceeded`). */
function isFull(errors: unknown): boolean {
  const data = isRecord(errors) ? errors["data"] : null;
  return (
    Array.isArray(data) && data.some((error: unknown) => isRecord(error) && error["code"] === "token_limit_exceeded")
  );
}
