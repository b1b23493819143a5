/** The few changes that the gateway makes to bodies that pass through it; all other bytes stay as they were. */
import { editJson, type JsonEdit } from "./json-edit.ts";
import { numberOf } from "./json-reading.ts";
import type { CapField, Endpoint, RequestFacts } from "./json-request.ts";
import { scanObject, valueAtPath } from "./json-scan.ts";

export type Rewrite = {
  /** Model id as the upstream knows it. */
  model: string;
  /** Completion cap of each completion, in tokens; null = the client's own, if any, stands. */
  cap: number | null;
  /** Field of a chat completion that carries the cap where the client names none; by default `max_tokens`. */
  capField?: CapField;
  /** Whether a stream of chat or text completions shall end with its usage. */
  includeUsage: boolean;
};

/** Fields that carry the cap of the other endpoints; null = nothing is completed. */
const CAP_FIELD: Readonly<Record<Exclude<Endpoint, "chat">, CapField | null>> = {
  completions: "max_tokens",
  embeddings: null,
  responses: "max_output_tokens",
  messages: "max_tokens",
};

/**
 * The request as the upstream shall get it. `facts` are those that `readRequest` found in these bytes. Every cap that
 * the client wrote above `cap` is lowered to it, so that it holds whichever of them the upstream obeys; a cap at or below
 * it stays as it is. The same bytes where nothing changes.
 */
export function rewriteRequest(bytes: Uint8Array, facts: RequestFacts, rewrite: Rewrite): Uint8Array {
  const edits: JsonEdit[] = capEdits(facts, rewrite);
  if (facts.model !== rewrite.model) edits.push({ path: ["model"], json: JSON.stringify(rewrite.model) });
  const hasUsageOption = facts.endpoint === "chat" || facts.endpoint === "completions";
  if (rewrite.includeUsage && facts.stream && hasUsageOption && !facts.includeUsage) {
    edits.push({ path: ["stream_options", "include_usage"], json: "true" });
  }
  return edits.length === 0 ? bytes : editJson(bytes, facts.object, edits);
}

function capEdits({ endpoint, caps }: RequestFacts, { cap, capField = "max_tokens" }: Rewrite): JsonEdit[] {
  if (cap === null) return [];
  const json = String(cap);
  if (caps.some(({ maxTokens }) => maxTokens !== null)) {
    const above = caps.filter(({ maxTokens }) => maxTokens !== null && maxTokens > cap);
    return above.map(({ field }) => ({ path: [field], json }));
  }
  const field = endpoint === "chat" ? capField : CAP_FIELD[endpoint];
  return field === null ? [] : [{ path: [field], json }];
}

/** Where the usage of a body stands: `["response", "usage"]` in events of the Responses API, for instance. */
export type UsagePath = readonly [string, ...string[]];

/**
 * Sets `cost`, in USD, in the usage of an answer or event. A body that is not JSON or has no usage object is returned as
 * it is, and so is one that names that cost already.
 */
export function fillCost(bytes: Uint8Array, costUsd: number, usagePath: UsagePath = ["usage"]): Uint8Array {
  const scan = scanObject(bytes);
  if (!scan.ok) return bytes;
  if (valueAtPath(bytes, scan.object, usagePath)?.kind !== "object") return bytes;
  const path: UsagePath = [...usagePath, "cost"];
  const named = valueAtPath(bytes, scan.object, path);
  if (named?.kind === "number" && numberOf(bytes, named) === costUsd) return bytes;
  return editJson(bytes, scan.object, [{ path, json: JSON.stringify(costUsd) }]);
}
