/** `POST /v1/messages/count_tokens`: what an upstream of Anthropic's API says of a prompt's tokens. */
import type { Context } from "hono";
import type { ModelRulesReply } from "../../objects/methods/runs.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { readJsonBytes } from "../../contract/body.ts";
import { Refusal } from "../../errors.ts";
import { accessTokens } from "../../executors/credentials.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { discard, readBody } from "../../providers/read-body.ts";
import { signedFetch } from "../../providers/credentials/signed-fetch.ts";
import { answerHeaders, endpointUrl, relayHeaders } from "../../providers/endpoints.ts";
import { kindOf } from "../../providers/kinds/table.ts";
import { requestReading } from "../../providers/formats/request/read.ts";
import { rewriteRequest } from "../../providers/formats/request/rewrite.ts";
import { redacted } from "../../providers/redact.ts";
import { targetOf } from "../../providers/target.ts";
import { inSlices, pause } from "../../text/bytes/slices.ts";
import { bodyRoom } from "../body-bound.ts";
import { requireUntaped } from "../untaped.ts";
import type { Handlers } from "../handler.ts";

export const countTokensHandlers = {
  "POST /v1/messages/count_tokens": countTokens,
} satisfies Partial<Handlers>;

/** Counts a prompt's tokens at the upstream, which bills nothing for it: so nothing is reserved. */
async function countTokens(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const read = await inSlices(requestReading("messages", body.value), pause);
  if (!read.ok) throw new Refusal(read.reason);
  const rules = await new RunCaller(c.env, runId).callWithRetry<ModelRulesReply>((run) => run.modelRules());
  if (!rules.ok) throw new Refusal(rules.reason);
  const { config } = c.var;
  const resolved = targetOf(read.value.model, rules.rules, config, "messages");
  if (!resolved.ok) throw new Refusal(resolved.reason);
  const upstream = config.upstreams.find(({ name }) => name === resolved.target.upstream);
  if (upstream === undefined) throw new Error(`upstream ${resolved.target.upstream} is not in its own configuration`);
  const target = endpointUrl(upstream, "messages", resolved.target.model, "/count_tokens");
  if (!target.ok) throw new Refusal(target.reason);
  const { countTokens: counted } = kindOf(upstream);
  if (counted !== undefined) return c.json({ input_tokens: counted(body.value.length) });
  requireUntaped(upstream, "token counts");
  const ready = await accessTokens.ready(upstream, c.req.raw);
  if (!ready.ok) throw new Refusal(ready.reason);
  const sent = rewriteRequest(body.value, read.value, { model: resolved.target.model, cap: null, includeUsage: false });
  const headers = relayHeaders(ready.upstream, (name) => c.req.header(name));
  const init = { method: "POST", headers, body: sent, redirect: "manual", signal: c.req.raw.signal } as const;
  const answer = await signedFetch(upstream, fetch)(target.url, init).catch(() => null);
  const status = answer?.status ?? null;
  const isOwn = status !== null && status !== 401 && status !== 403 && !(status >= 300 && status < 400);
  const words = answer !== null && isOwn ? await readBody(answer).catch(() => null) : null;
  if (answer === null || words?.ok !== true) {
    if (answer !== null) await discard(answer);
    const message = `${upstream.name} did not answer the request to count tokens${status === null ? "" : ` (status ${status})`}`;
    const retryable = status === null || isOwn;
    throw new Refusal({ reason: "upstream_error", upstream: upstream.name, status, message, retryable });
  }
  return new Response(redacted(words.text, ready.upstream), {
    status: answer.status,
    headers: answerHeaders(answer.headers, ready.upstream),
  });
}
