/** Responses, as the simulated upstream reads and writes them. */
import { contentText, turnsIn } from "./conversation.ts";
import { responsesFormat } from "./format.ts";
import { callIdOf, capIn, conversationInput, type Job, openaiError, type Protocol, type Read } from "./protocol.ts";
import { type Frame, typedFrame } from "./stream.ts";

export const responses: Protocol = { read, document, frames, error: openaiError };

function read(request: Job["request"]): Read {
  const { input, instructions: system, max_output_tokens: cap } = request;
  if (typeof input !== "string" && !Array.isArray(input)) {
    return { ok: false, message: "input must be a string or an array of items" };
  }
  const items: readonly unknown[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const [instructions, format, capTokens] = [contentText(system), responsesFormat(request), capIn(cap)];
  return conversationInput(request, turnsIn(items), { instructions, format, capTokens, choices: 1 });
}

function document(job: Job): unknown {
  return finalOf(job).response;
}

function* frames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  let sequence = 0;
  const event = (part: Frame["part"], type: string, fields: Record<string, unknown>): Frame => {
    return typedFrame(part, `response.${type}`, { sequence_number: sequence++, ...fields });
  };
  const { text, item, response } = finalOf(job);
  const begun = { ...commonOf(job), status: "in_progress", incomplete_details: null, output: [], usage: null };
  yield event("opening", "created", { response: begun });
  yield event("opening", "in_progress", { response: begun });
  const inItem = { item_id: item.id, output_index: 0 };
  if (item.type === "function_call") {
    yield event("opening", "output_item.added", { output_index: 0, item: { ...item, ...BEGUN, arguments: "" } });
    for (const delta of split(text)) yield event("delta", "function_call_arguments.delta", { ...inItem, delta });
    yield event("closing", "function_call_arguments.done", { ...inItem, name: item.name, arguments: text });
  } else {
    const inPart = { ...inItem, content_index: 0 };
    yield event("opening", "output_item.added", { output_index: 0, item: { ...item, ...BEGUN, content: [] } });
    yield event("opening", "content_part.added", { ...inPart, part: partOf("") });
    for (const delta of split(text)) yield event("delta", "output_text.delta", { ...inPart, delta, logprobs: [] });
    yield event("closing", "output_text.done", { ...inPart, text, logprobs: [] });
    yield event("closing", "content_part.done", { ...inPart, part: partOf(text) });
  }
  yield event("closing", "output_item.done", { output_index: 0, item });
  yield event("closing", response.status, { response });
}

const BEGUN = { status: "in_progress" };

/** The finished answer. */
function finalOf(job: Job) {
  const { input, completions, completionTokens } = job;
  const text = completions[0]?.text ?? "";
  const isCut = completions[0]?.isCut === true;
  const status = isCut ? "incomplete" : "completed";
  const item = itemOf(job, text, status);
  const usage = {
    input_tokens: input.promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input.promptTokens + completionTokens,
  };
  const incompleteDetails = isCut ? { reason: "max_output_tokens" } : null;
  const response = { ...commonOf(job), status, incomplete_details: incompleteDetails, output: [item], usage };
  return { text, item, response };
}

function itemOf(job: Job, text: string, status: string) {
  const { id, call } = job;
  if (call === null)
    return { id: `msg_sim_${id}`, type: "message", status, role: "assistant", content: [partOf(text)] } as const;
  const [itemId, callId] = [`fc_sim_${id}_${call.round}`, callIdOf(job, call, 0)];
  return { id: itemId, type: "function_call", status, call_id: callId, name: call.name, arguments: text } as const;
}

function partOf(text: string) {
  return { type: "output_text", annotations: [], logprobs: [], text };
}

/** The fields that a response has from its first event on, most of them copied from the request. Nothing is stored. */
function commonOf({ id, createdS, model, request }: Job) {
  return {
    id: `resp_sim_${id}`,
    object: "response",
    created_at: createdS,
    error: null,
    background: false,
    instructions: request["instructions"] ?? null,
    max_output_tokens: request["max_output_tokens"] ?? null,
    metadata: request["metadata"] ?? {},
    model,
    parallel_tool_calls: request["parallel_tool_calls"] ?? true,
    previous_response_id: request["previous_response_id"] ?? null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: request["temperature"] ?? 1,
    text: request["text"] ?? { format: { type: "text" } },
    tool_choice: request["tool_choice"] ?? "auto",
    tools: request["tools"] ?? [],
    top_p: request["top_p"] ?? 1,
    truncation: "disabled",
  };
}
