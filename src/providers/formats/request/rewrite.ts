/** Makes the few changes that a relayed body needs; all other bytes stay as they were. */
import { editJson, type JsonEdit } from "../../../text/json/edit.ts";
import type { Endpoint, RequestFacts } from "./read.ts";
import type { CapSpelling } from "./request-fields.ts";

/** The spellings of a chat completion's cap that an upstream may be configured for. */
export type ChatCapField = "max_tokens" | "max_completion_tokens";

export type Rewrite = {
  /** The upstream's id of the model. */
  model: string;
  /** Cap of each completion, tokens; null = the client's own, if any. */
  cap: number | null;
  /** The field in which this upstream reads the cap of a chat completion; default `max_tokens`. */
  capField?: ChatCapField;
  /** Whether to request the usage of a stream of chat or text completions. */
  includeUsage: boolean;
};

/** The cap fields of the other endpoints; null = the endpoint completes nothing. */
const CAP_FIELD: Readonly<Record<Exclude<Endpoint, "chat">, CapSpelling | null>> = {
  completions: "max_tokens",
  embeddings: null,
  responses: "max_output_tokens",
  messages: "max_tokens",
};

/**
 * The request for the upstream. `facts` are those that `readRequest` found in these bytes. A cap is sent in the field that
 * the upstream reads, whichever spelling the client used: a cap that the upstream ignores bounds nothing. Returns the same
 * bytes if nothing changes.
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

function capEdits({ endpoint, caps, maxTokens }: RequestFacts, { cap, capField = "max_tokens" }: Rewrite): JsonEdit[] {
  const field = endpoint === "chat" ? capField : CAP_FIELD[endpoint];
  const sent = cap === null || maxTokens === null ? (cap ?? maxTokens) : Math.min(cap, maxTokens);
  if (field === null || sent === null) return [];
  const others = caps.filter((requested) => requested.field !== field);
  const edits: JsonEdit[] = others.map((requested) => ({ path: [requested.field], json: null }));
  const isWritten = caps.some((requested) => requested.field === field && requested.maxTokens === sent);
  if (!isWritten) edits.push({ path: [field], json: String(sent) });
  return edits;
}
