/** Responses that an upstream stores, under a run token: requests for one go to the upstream that stores it. */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import type { BudgetDocument } from "../../contract/runs.ts";
import { Refusal } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { accessTokens } from "../../executors/credentials.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { upstreamAt } from "../../providers/config/keys.ts";
import { addressOf, hasModelPlace } from "../../providers/config/address.ts";
import { signedFetch } from "../../providers/credentials/signed-fetch.ts";
import { answerHeaders, relayHeaders } from "../../providers/endpoints.ts";
import { kindOf } from "../../providers/kinds/table.ts";
import { requireUntaped } from "../untaped.ts";
import { redactedStream } from "../../providers/relay/redact.ts";
import type { Handlers } from "../handler.ts";

export const storedResponseHandlers = {
  "GET /v1/responses/:id": (c) => forwardToStore(c, "GET", ""),
  "DELETE /v1/responses/:id": (c) => forwardToStore(c, "DELETE", ""),
  "POST /v1/responses/:id/cancel": (c) => forwardToStore(c, "POST", "/cancel"),
  "GET /v1/responses/:id/input_items": (c) => forwardToStore(c, "GET", "/input_items"),
} satisfies Partial<Handlers>;

/** Query parameters of a stored response that its upstream reads. */
const QUERY = ["after", "include", "include[]", "include_obfuscation", "limit", "order", "starting_after", "stream"];

/** Forwards a request to the upstream that stores a response of this run. It costs nothing there, so nothing is reserved. */
async function forwardToStore(c: Context<AppEnv>, method: "GET" | "DELETE" | "POST", rest: string): Promise<Response> {
  const runId = requireRun(c);
  const id = c.req.param("id") ?? "";
  const stored = await storingUpstreamOf(c, runId, id);
  const upstream = stored === null ? null : upstreamAt(c.get("config").upstreams, stored);
  if (upstream === null) throw new Refusal({ reason: "not_found", what: `response ${id.slice(0, NAME_CHARS_MAX)}` });
  const { storesNoResponses: hint } = kindOf(upstream);
  if (hint !== undefined)
    throw new Refusal({ reason: "not_found", what: `response ${id.slice(0, NAME_CHARS_MAX)}`, hint });
  requireUntaped(upstream, "stored responses");
  const address = hasModelPlace(upstream.baseUrl)
    ? null
    : addressOf(upstream, `/responses/${encodeURIComponent(id)}${rest}`, "");
  if (address === null) throw new Refusal({ reason: "not_found", what: `response ${id.slice(0, NAME_CHARS_MAX)}` });
  const ready = await accessTokens.ready(upstream, c.req.raw);
  if (!ready.ok) throw new Refusal(ready.reason);
  const url = new URL(address);
  for (const name of QUERY) for (const value of c.req.queries(name) ?? []) url.searchParams.append(name, value);
  const headers = relayHeaders(ready.upstream, (name) => c.req.header(name));
  let answer: Response;
  try {
    answer = await signedFetch(upstream, fetch)(url.href, {
      method,
      headers,
      redirect: "manual",
      signal: c.req.raw.signal,
    });
  } catch {
    const message = `${upstream.name} could not be reached for a response that it stores`;
    throw new Refusal({ reason: "upstream_error", upstream: upstream.name, status: null, message, retryable: true });
  }
  const { status } = answer;
  if (status === 401 || status === 403 || status < 200 || (status >= 300 && status < 400)) {
    await answer.body?.cancel();
    const message = `${upstream.name} refused the gateway's request for a response that it stores (status ${status})`;
    throw new Refusal({ reason: "upstream_error", upstream: upstream.name, status, message, retryable: false });
  }
  const body = answer.body === null ? null : redactedStream(answer.body, ready.upstream);
  return new Response(body, { status, headers: answerHeaders(answer.headers, ready.upstream) });
}

/** Pauses between look-ups of a response that may be about to be recorded, ms: recording takes a few, on a busy machine more. */
const LOOK_UP_PAUSES_MS = [10, 25, 50, 100, 200, 400];

/**
 * The upstream that stores a response; null if none does. A call is settled a moment after its last byte, and its client
 * may request the response at once: so the result is null only when nothing is in flight.
 */
async function storingUpstreamOf(c: Context<AppEnv>, runId: string, id: string): Promise<string | null> {
  const run = new RunCaller(c.env, runId);
  const storedAnswerAt = (): Promise<string | null> =>
    run.callWithRetry<string | null>((stub) => stub.storedAnswerAt(id));
  let keeper = await storedAnswerAt();
  for (const pauseMs of LOOK_UP_PAUSES_MS) {
    if (keeper !== null) return keeper;
    const inFlight = (await run.callWithRetry<BudgetDocument | null>((stub) => stub.budget()))?.calls.reserved ?? 0;
    if (inFlight > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    keeper = await storedAnswerAt();
    if (inFlight === 0) return keeper;
  }
  return keeper;
}
