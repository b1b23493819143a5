/** Chat and text completions: choices whose deltas alternate, and usage in a chunk of its own. */
import { isRecord } from "../../text/json/record.ts";
import { turnsIn } from "./conversation.ts";
import { chatFormat } from "./format.ts";
import { textsIn, TEXTS_EXPECTED } from "./prompt.ts";
import {
  callIdOf,
  capIn,
  choicesIn,
  conversationInput,
  type Job,
  openaiError,
  type Protocol,
  type Read,
  type ToolCall,
  WRONG_CHOICES,
} from "./protocol.ts";
import { dataFrame, DONE, type Frame } from "./stream.ts";
import type { Completion } from "./text.ts";

// ─── Chat completions ───

export const chat: Protocol = {
  read: chatRead,
  document: chatDocument,
  frames: chatFrames,
  error: openaiError,
};

function chatRead(request: Job["request"]): Read {
  const { messages, n, max_completion_tokens: cap, max_tokens: olderCap } = request;
  if (!Array.isArray(messages)) return { ok: false, message: "messages must be an array" };
  const choices = choicesIn(n);
  if (choices === null) return WRONG_CHOICES;
  const capTokens = capIn(cap, olderCap);
  return conversationInput(request, turnsIn(messages), { format: chatFormat(request), capTokens, choices });
}

function chatDocument(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    message: chatMessage(job, completion, index),
    logprobs: null,
    finish_reason: finishReason(completion, job.call),
  }));
  return { ...chatHead(job, "chat.completion"), choices, usage: completionUsage(job) };
}

/** A choice that calls a tool has no content. */
function chatMessage(job: Job, { text }: Completion, index: number) {
  if (job.call === null) return { role: "assistant", content: text, refusal: null };
  return { role: "assistant", content: null, refusal: null, tool_calls: [chatCall(job, job.call, { text, index })] };
}

function chatCall(job: Job, call: ToolCall, { text, index }: { text: string; index: number }) {
  return { id: callIdOf(job, call, index), type: "function", function: { name: call.name, arguments: text } };
}

function* chatFrames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  const head = chatHead(job, "chat.completion.chunk");
  const chunk = (part: Frame["part"], index: number, delta: unknown, reason: string | null): Frame => {
    const choice = { index, delta, logprobs: null, finish_reason: reason };
    return dataFrame(part, { ...head, choices: [choice], ...pendingUsage(job) });
  };
  const { call } = job;
  for (const index of job.completions.keys()) {
    const called = call === null ? {} : { tool_calls: [{ index: 0, ...chatCall(job, call, { text: "", index }) }] };
    const content = call === null ? "" : null;
    yield chunk("opening", index, { role: "assistant", content, refusal: null, ...called }, null);
  }
  for (const { index, delta } of alternating(job.completions, split)) {
    const part = call === null ? { content: delta } : { tool_calls: [{ index: 0, function: { arguments: delta } }] };
    yield chunk("delta", index, part, null);
  }
  for (const [index, completion] of job.completions.entries()) {
    yield chunk("closing", index, {}, finishReason(completion, call));
  }
  yield* usageFrames(job, head);
  yield DONE;
}

function chatHead({ id, createdS, model }: Job, object: string) {
  return { id: `chatcmpl-sim-${id}`, object, created: createdS, model };
}

// ─── Text completions ───

export const completions: Protocol = {
  read: textRead,
  document: textDocument,
  frames: textFrames,
  error: openaiError,
};

function textRead(request: Job["request"]): Read {
  const { prompt, n, max_tokens: cap } = request;
  const given = textsIn(prompt);
  if (given === null) return { ok: false, message: `prompt must be ${TEXTS_EXPECTED}` };
  const choices = choicesIn(n);
  if (choices === null) return WRONG_CHOICES;
  const [prompts, promptTokens] = [given.texts, given.tokens];
  return { ok: true, input: { prompts, promptTokens, capTokens: capIn(cap), choices, structured: null } };
}

function textDocument(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    text: completion.text,
    logprobs: null,
    finish_reason: finishReason(completion, null),
  }));
  return { ...textHead(job), choices, usage: completionUsage(job) };
}

function* textFrames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  const head = textHead(job);
  const chunk = (part: Frame["part"], index: number, text: string, reason: string | null): Frame => {
    const choice = { index, text, logprobs: null, finish_reason: reason };
    return dataFrame(part, { ...head, choices: [choice], ...pendingUsage(job) });
  };
  for (const { index, delta } of alternating(job.completions, split)) yield chunk("delta", index, delta, null);
  for (const [index, completion] of job.completions.entries()) {
    yield chunk("closing", index, "", finishReason(completion, null));
  }
  yield* usageFrames(job, head);
  yield DONE;
}

function textHead({ id, createdS, model }: Job) {
  return { id: `cmpl-sim-${id}`, object: "text_completion", created: createdS, model };
}

// ─── Both ───

/** The first delta of each choice, then the second of each: the order of a provider that writes choices in parallel. */
function* alternating(
  completions: readonly Completion[],
  split: (text: string) => readonly string[],
): Generator<{ index: number; delta: string }> {
  const deltas = completions.map(({ text }) => split(text));
  const rounds = deltas.reduce((most, { length }) => Math.max(most, length), 0);
  for (let round = 0; round < rounds; round++) {
    for (const [index, { [round]: delta }] of deltas.entries()) if (delta !== undefined) yield { index, delta };
  }
}

function finishReason({ isCut }: Completion, call: ToolCall | null): "length" | "tool_calls" | "stop" {
  if (isCut) return "length";
  return call === null ? "stop" : "tool_calls";
}

function completionUsage({ input, completionTokens }: Job) {
  return {
    prompt_tokens: input.promptTokens,
    completion_tokens: completionTokens,
    total_tokens: input.promptTokens + completionTokens,
  };
}

/** A client that requested usage gets null in every chunk before the one with the usage. */
function pendingUsage(job: Job): { usage?: null } {
  return wantsUsage(job) ? { usage: null } : {};
}

/** The chunk without choices that holds the usage, for a client that requested it. */
function* usageFrames(job: Job, head: Record<string, unknown>): Generator<Frame> {
  if (wantsUsage(job)) yield dataFrame("closing", { ...head, choices: [], usage: completionUsage(job) });
}

function wantsUsage({ request }: Job): boolean {
  const options = request["stream_options"];
  return isRecord(options) && options["include_usage"] === true;
}
