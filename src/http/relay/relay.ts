/**
 * `/v1` endpoints that spend: the client's bytes go to the upstream and the upstream's come back, under the run's budget,
 * permits, log and retries.
 */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { inSlices, pause } from "../../text/bytes/slices.ts";
import { readJsonBytes } from "../../contract/body.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { relayCall } from "../../executors/relayed-call.ts";
import { RELAY_QUEUE_MS_MAX, RELAY_RETRY_AFTER_MS } from "../../limits.ts";
import { BETA_HEADER } from "../../providers/formats/request/betas.ts";
import { markedBeginning } from "../../providers/formats/request/marked-beginning.ts";
import { requestReading, withBetas, type Endpoint } from "../../providers/formats/request/read.ts";
import { spentBefore, spentOf } from "../replies/usage.ts";
import { relayedContent } from "../../recordings/content.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { bodyRoom } from "../body-bound.ts";
import { clientTrace } from "../client-trace.ts";
import type { Handlers } from "../handler.ts";
import { recordingOf } from "../recording.ts";
import { remainingUsdText } from "../under-run.ts";
import { panelFor } from "../../providers/panel.ts";
import { chatWithPanel } from "./panel.ts";
import { isAnthropicPath } from "../anthropic-error.ts";
import { relayedError } from "./relay-error.ts";

export const relayHandlers = {
  "POST /v1/chat/completions": (c) => relay(c, "chat"),
  "POST /v1/completions": (c) => relay(c, "completions"),
  "POST /v1/embeddings": (c) => relay(c, "embeddings"),
  "POST /v1/responses": (c) => relay(c, "responses"),
  "POST /v1/messages": (c) => relay(c, "messages"),
} satisfies Partial<Handlers>;

async function relay(c: Context<AppEnv>, endpoint: Endpoint): Promise<Response> {
  const runId = requireRun(c);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const read = await inSlices(requestReading(endpoint, body.value), pause);
  if (!read.ok) throw new Refusal(read.reason);
  const facts = { ...read, value: withBetas(read.value, c.req.header(BETA_HEADER) ?? "") };
  const panel = endpoint === "chat" ? panelFor(c.get("config"), facts.value.model) : null;
  if (panel !== null) return await chatWithPanel(c, runId, panel, body.value);
  const waitUntil = (promise: Promise<unknown>): void => c.executionCtx.waitUntil(promise);
  const recording = await recordingOf(c, runId);
  const request = { bytes: body.value, facts: facts.value, query: queryOf(c) };
  const { cacheTtl, object } = facts.value;
  // The beginning that the client has marked for the provider's cache.
  const shared = cacheTtl === null ? null : await inSlices(markedBeginning(endpoint, body.value, object), pause);
  const relaying = relayCall(
    { ...request, header: (name) => c.req.header(name), ...(shared === null ? {} : { shared }) },
    {
      ...{ run: new RunCaller(c.env, runId), config: c.get("config"), signal: c.get("client"), waitUntil },
      ...clientTrace(c),
      acceptedAtMs: c.get("acceptedAtMs"),
    },
    recording === null ? null : { ...recording, content: await contentOf(c, endpoint, body.value) },
  );
  // If the client leaves, the attempt is stopped and must still be settled.
  waitUntil(relaying.catch(() => undefined));
  const { end, usage } = await relaying;
  c.set("remainingNanoUsd", usage.remainingNanoUsd);
  switch (end.kind) {
    case "client_gone":
      return new Response(null, { status: 499 });
    case "replayed": {
      const { text, contentType = "application/json" } = end.answer;
      return new Response(text, { headers: { "content-type": contentType, "x-fanout-replayed": "true" } });
    }
    case "refused": {
      const reason = queueReason(end.reason);
      throw new Refusal(reason, spentBefore(usage, reason));
    }
    case "failed":
      return relayedError(end, usage.attempts === 0 ? null : spentOf(usage));
    case "answered": {
      const requestId = c.get("requestId");
      // All headers at once, as of /query: each one set later copies the answer, or costs as much as the first five.
      const headers: Record<string, string> = { ...end.headers };
      headers["x-request-id"] = requestId;
      headers["x-fanout-run"] = runId;
      headers["x-fanout-budget-remaining-usd"] = remainingUsdText(usage.remainingNanoUsd);
      if (isAnthropicPath(c.req.path)) headers["request-id"] = requestId;
      if (end.cappedBy !== undefined) headers["x-fanout-capped-by"] = end.cappedBy;
      if (end.upstream !== undefined) headers["x-fanout-upstream"] = end.upstream;
      const response = new Response(end.body, { status: end.status, headers });
      c.set("isNamed", true);
      return response;
    }
  }
}

/** The hash of what decides the answer of a request: its bytes, and the headers that change what an upstream does. */
function contentOf(c: Context<AppEnv>, endpoint: Endpoint, body: Uint8Array): Promise<string> {
  const headers = CONTENT_HEADERS.map((name) => [name, c.req.header(name) ?? ""] as const);
  return sha256Hex(relayedContent({ endpoint, query: queryOf(c), headers }, body));
}

const CONTENT_HEADERS = ["anthropic-version", "anthropic-beta", "openai-beta"];

/** A client of these endpoints knows that a busy server answers 503, and when to retry. */
function queueReason(reason: Reason): Reason {
  if (reason.reason !== "deadline_exceeded") return reason;
  const message = `no permit was free within ${RELAY_QUEUE_MS_MAX} ms: the run has more calls waiting than it may make at once`;
  return { reason: "overloaded", message, retryAfterMs: RELAY_RETRY_AFTER_MS };
}

/** Anthropic's clients mark their beta endpoints in the query; nothing else of it is relayed. */
function queryOf(c: Context<AppEnv>): string {
  return c.req.query("beta") === "true" ? "?beta=true" : "";
}
