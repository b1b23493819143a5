/** Turns a request for a JSON answer into one for a stream of the same answer. */
import type { CallBody } from "../call.ts";
import type { AggregatedFamily } from "./formats/aggregate/stream.ts";
import type { Upstream } from "./config/types.ts";
import { editJson, type JsonEdit } from "../text/json/edit.ts";
import { member, scanObject } from "../text/json/scan.ts";
import type { UpstreamRequest } from "./kinds/kind.ts";
import { kindOf } from "./kinds/table.ts";

/**
 * Fields whose results cannot be aggregated from a stream's events: sound, and findings of the upstream's own searches. A
 * body with one of them requests JSON.
 */
const NOT_MERGED: readonly string[] = ["audio", "modalities", "web_search_options"];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The family of streams that a call's answer can be aggregated from; null = the call requests JSON. */
export function streamFamilyOf(upstream: Upstream, { raw, params = {} }: CallBody): AggregatedFamily | null {
  if (raw === undefined) {
    if (NOT_MERGED.some((name) => name in params)) return null;
    return kindOf(upstream).streams;
  }
  if (raw.endpoint !== "chat" && raw.endpoint !== "messages") return null;
  const scan = scanObject(encoder.encode(raw.json));
  if (!scan.ok || NOT_MERGED.some((name) => member(scan.object, name) !== null)) return null;
  return raw.endpoint;
}

/** The same request, for a stream that ends with its usage. All other bytes stay as they are. */
export function streamedRequest(request: UpstreamRequest, family: AggregatedFamily): UpstreamRequest {
  const bytes = encoder.encode(request.body);
  const scan = scanObject(bytes);
  if (!scan.ok) return request;
  const edits: JsonEdit[] = [{ path: ["stream"], json: "true" }];
  // Anthropic's streams always name their usage.
  if (family === "chat") edits.push({ path: ["stream_options", "include_usage"], json: "true" });
  const body = decoder.decode(editJson(bytes, scan.object, edits));
  const headers = { ...request.headers };
  if (headers["accept"] === "application/json") headers["accept"] = "text/event-stream";
  return { ...request, headers, body };
}
