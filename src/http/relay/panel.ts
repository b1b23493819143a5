/** `POST /v1/chat/completions` with the model `fanout/panel`: an ordinary chat completion that several models have made. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { jsonOf } from "../../contract/body.ts";
import { parseQuery } from "../../contract/query.ts";
import { Refusal, toWire } from "../../errors.ts";
import { isRecord } from "../../text/json/record.ts";
import { usageOf } from "../replies/usage.ts";
import { PANEL_MODEL, type Panel } from "../../providers/panel.ts";
import { askPanel, type PanelAnswer } from "../native/combining/panel.ts";
import { streamPieces } from "../native/group-answer.ts";

/** Answers a chat completion by the panel, whole or as a stream of one piece. */
export async function chatWithPanel(
  c: Context<AppEnv>,
  runId: string,
  panel: Panel,
  bytes: Uint8Array,
): Promise<Response> {
  const body = jsonOf(bytes);
  if (!body.ok) throw new Refusal(body.reason);
  if (!isRecord(body.value))
    throw new Refusal({ reason: "invalid_request", message: "expected an object", param: null });
  const { model: _, stream, stream_options: options, max_completion_tokens: cap, ...rest } = body.value;
  const { messages, max_tokens: oldCap, temperature, ...params } = rest;
  const maxTokens = cap ?? oldCap;
  const read = parseQuery(
    {
      messages,
      ...(maxTokens != null && { max_tokens: maxTokens }),
      ...(temperature != null && { temperature }),
      ...(Object.keys(params).length > 0 && { params }),
    },
    (field) => field.replace(/^params\./, ""),
  );
  if (!read.ok) throw new Refusal(read.reason);
  const call = { call: read.value, named: null };
  const id = `chatcmpl-${c.get("requestId")}`;
  const head = { id, created: Math.floor(Date.now() / 1_000), model: PANEL_MODEL };
  if (stream !== true) return c.json(completionOf(head, await askPanel(c, runId, panel, call)));
  const includesUsage = isRecord(options) && options["include_usage"] === true;
  const pieces = chunks(head, includesUsage, () => askPanel(c, runId, panel, call));
  return streamPieces(c, { runId, remainingNanoUsd: null }, pieces, STREAM);
}

const STREAM = { contentType: "text/event-stream", keepAlive: ": waiting\n\n" };

type Head = { id: string; created: number; model: string };

function completionOf(head: Head, { text, finishReason, spent }: PanelAnswer) {
  const message = { role: "assistant", content: text, refusal: null };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason ?? "stop" };
  return { ...head, object: "chat.completion", choices: [choice], usage: usageOf(spent) };
}

/** What fails after the headers are sent ends the stream with an error. */
async function* chunks(head: Head, includesUsage: boolean, ask: () => Promise<PanelAnswer>): AsyncGenerator<string> {
  const event = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
  const chunk = (more: object): string =>
    event({ ...head, object: "chat.completion.chunk", ...(includesUsage && { usage: null }), ...more });
  try {
    const { text, finishReason, spent } = await ask();
    const delta = { role: "assistant", content: text };
    yield chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] });
    yield chunk({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason ?? "stop" }] });
    if (includesUsage) yield chunk({ choices: [], usage: usageOf(spent) });
    yield "data: [DONE]\n\n";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    yield event({ error: toWire(error.reason).error });
  }
}
