import type { BatchRequest } from "../../../src/batch/create.ts";
import type { BatchRules } from "../../../src/batch/check.ts";

export const MODEL = "openai/gpt-x";

/** Rules of a batch of chat completions whose gateway serves `MODEL` and `other/model`. */
export function makeRules(fields: Partial<BatchRules> = {}): BatchRules {
  return {
    url: "/v1/chat/completions",
    defaultModel: null,
    serves: (model) => model === MODEL || model === "other/model",
    fileBytes: 1_000,
    strict: false,
    ...fields,
  };
}

/** A line of a chat completion. A field that is set to undefined is left out. */
export function makeLine(fields: Record<string, unknown> = {}, body: Record<string, unknown> = {}) {
  return {
    custom_id: "a",
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: MODEL, messages: [{ role: "user", content: "hi" }], ...body },
    ...fields,
  };
}

const encoder = new TextEncoder();

/** The bytes of a line: text as it is, anything else as JSON. */
export function bytesOf(line: unknown): Uint8Array {
  return encoder.encode(typeof line === "string" ? line : JSON.stringify(line));
}

export function makeRequest(fields: Partial<BatchRequest> = {}): BatchRequest {
  return {
    inputFileId: "file-in",
    url: "/v1/chat/completions",
    metadata: null,
    outputExpiresAfterS: null,
    strict: false,
    ...fields,
  };
}
