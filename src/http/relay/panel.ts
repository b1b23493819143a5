/** `POST /v1/chat/completions` with the model `fanout/panel`: an ordinary chat completion that several models have made. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { jsonOf } from "../../contract/body.ts";
import { parseQuery } from "../../contract/query.ts";
import { Refusal, toWire } from "../../errors.ts";
import { tryParse } from "../../text/json/parse.ts";
import { isRecord } from "../../text/json/record.ts";
import { withParts } from "../replies/parts.ts";
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
  if (stream !== true) {
    const completion = completionOf(head, await askPanel(c, runId, panel, call));
    return c.body(completion, 200, { "content-type": "application/json" });
  }
  const includesUsage = isRecord(options) && options["include_usage"] === true;
  const pieces = chunks(head, includesUsage, () => askPanel(c, runId, panel, call));
  return streamPieces(c, { runId, remainingNanoUsd: null }, pieces, STREAM);
}

const STREAM = { contentType: "text/event-stream", keepAlive: ": waiting\n\n" };

type Head = { id: string; created: number; model: string };

/** The completion as JSON text, with the judge's message as its provider wrote it. */
function completionOf(head: Head, { text, parts, finishReason, spent }: PanelAnswer): string {
  const message = parts?.message ?? JSON.stringify({ role: "assistant", content: text, refusal: null });
  const choice = withParts({ index: 0, logprobs: null, finish_reason: finishReason ?? "stop" }, { message });
  const completion = JSON.stringify({ ...head, object: "chat.completion", usage: usageOf(spent) });
  return `${completion.slice(0, -1)},"choices":[${choice}]}`;
}

/** The whole message as one delta, whose calls of tools have their places. */
function deltaOf({ text, parts }: PanelAnswer): object {
  const message = parts?.message === undefined ? undefined : tryParse(parts.message);
  if (!isRecord(message)) return { role: "assistant", content: text };
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  return { ...message, tool_calls: calls.map((call: unknown, index) => (isRecord(call) ? { index, ...call } : call)) };
}

/** What fails after the headers are sent ends the stream with an error. */
async function* chunks(head: Head, includesUsage: boolean, ask: () => Promise<PanelAnswer>): AsyncGenerator<string> {
  const event = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
  const chunk = (more: object): string =>
    event({ ...head, object: "chat.completion.chunk", ...(includesUsage && { usage: null }), ...more });
  try {
    const answer = await ask();
    const { finishReason, spent } = answer;
    const delta = deltaOf(answer);
    yield chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] });
    yield chunk({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason ?? "stop" }] });
    if (includesUsage) yield chunk({ choices: [], usage: usageOf(spent) });
    yield "data: [DONE]\n\n";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    yield event({ error: toWire(error.reason).error });
  }
}
