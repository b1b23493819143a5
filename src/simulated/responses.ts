/** Responses, as the simulated upstream reads and writes them. */
import { contentText, lastUserText, messageTexts } from "./prompt.ts";
import { capIn, type Job, openaiError, type Protocol, type Read } from "./protocol.ts";
import { type Frame, typedFrame } from "./stream.ts";
import { tokensOf } from "./text.ts";

export const responses: Protocol = { read, document, frames, error: openaiError };

function read({ input, instructions, max_output_tokens: cap }: Job["request"]): Read {
  if (typeof input !== "string" && !Array.isArray(input)) {
    return { ok: false, message: "input must be a string or an array of items" };
  }
  const items: readonly unknown[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const promptTokens = tokensOf([contentText(instructions), ...messageTexts(items)]);
  return { ok: true, input: { prompts: [lastUserText(items)], promptTokens, capTokens: capIn(cap), choices: 1 } };
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
  const inItem = { item_id: item.id, output_index: 0, content_index: 0 };
  yield event("opening", "created", { response: begun });
  yield event("opening", "in_progress", { response: begun });
  const emptyItem = { ...item, status: "in_progress", content: [] };
  yield event("opening", "output_item.added", { output_index: 0, item: emptyItem });
  yield event("opening", "content_part.added", { ...inItem, part: partOf("") });
  for (const delta of split(text)) yield event("delta", "output_text.delta", { ...inItem, delta, logprobs: [] });
  yield event("closing", "output_text.done", { ...inItem, text, logprobs: [] });
  yield event("closing", "content_part.done", { ...inItem, part: partOf(text) });
  yield event("closing", "output_item.done", { output_index: 0, item });
  yield event("closing", response.status, { response });
}

/** The finished answer. */
function finalOf(job: Job) {
  const { input, completions, completionTokens } = job;
  const text = completions[0]?.text ?? "";
  const isCut = completions[0]?.isCut === true;
  const status = isCut ? "incomplete" : "completed";
  const item = { id: `msg_sim_${job.id}`, type: "message", status, role: "assistant", content: [partOf(text)] };
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
