/** `POST /query` with the model `fanout/panel`. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import { prefersAsync } from "../../../contract/groups.ts";
import type { ParsedCall } from "../../../contract/call.ts";
import { Refusal } from "../../../errors.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { PANEL_MODEL, type Panel } from "../../../providers/panel.ts";
import { queryReply, wantsText } from "../query-reply.ts";
import { askPanel } from "./panel.ts";

/** Answers a call by the panel. */
export async function queryPanel(
  c: Context<AppEnv>,
  runId: string,
  panel: Panel,
  { call, named }: { call: ParsedCall; named: IdempotencyKey | null },
): Promise<Response> {
  if (prefersAsync(c.req.header("prefer"))) {
    const message = `model: ${PANEL_MODEL} answers while its client waits; leave out Prefer: respond-async`;
    throw new Refusal({ reason: "invalid_request", message, param: "model" });
  }
  const startedMs = Date.now();
  const { text, finishReason, parts, attempts, spent } = await askPanel(c, runId, panel, { call, named });
  if (wantsText(c)) return c.text(text);
  const latencyMs = Date.now() - startedMs;
  const end = { attempts, latencyMs, queuedMs: 0, ...spent, parallelGroupId: null };
  const answer = { text, parts, model: PANEL_MODEL, finishReason, isJson: call.body.schema !== undefined };
  return c.body(queryReply(c.get("requestId"), end, answer), 200, { "content-type": "application/json" });
}
