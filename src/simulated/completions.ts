/** Chat and text completions: choices whose deltas alternate, and usage in a chunk of its own. */
import { isRecord } from "../json/record.ts";
import { lastUserText, messageTexts, textsIn, TEXTS_EXPECTED } from "./prompt.ts";
import { capIn, choicesIn, type Job, openaiError, type Protocol, type Read, WRONG_CHOICES } from "./protocol.ts";
import { dataFrame, DONE, type Frame } from "./stream.ts";
import { type Completion, tokensOf } from "./text.ts";

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
  const prompts = [lastUserText(messages)];
  const promptTokens = tokensOf(messageTexts(messages));
  return { ok: true, input: { prompts, promptTokens, capTokens: capIn(cap, olderCap), choices } };
}

function chatDocument(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    message: { role: "assistant", content: completion.text, refusal: null },
    logprobs: null,
    finish_reason: finishReason(completion),
  }));
  return { ...chatHead(job, "chat.completion"), choices, usage: completionUsage(job) };
}

function* chatFrames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  const head = chatHead(job, "chat.completion.chunk");
  const chunk = (part: Frame["part"], index: number, delta: unknown, reason: string | null): Frame => {
    const choice = { index, delta, logprobs: null, finish_reason: reason };
    return dataFrame(part, { ...head, choices: [choice], ...pendingUsage(job) });
  };
  for (const index of job.completions.keys()) {
    yield chunk("opening", index, { role: "assistant", content: "", refusal: null }, null);
  }
  for (const { index, delta } of alternating(job.completions, split))
    yield chunk("delta", index, { content: delta }, null);
  for (const [index, completion] of job.completions.entries()) {
    yield chunk("closing", index, {}, finishReason(completion));
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
  return { ok: true, input: { prompts: given.texts, promptTokens: given.tokens, capTokens: capIn(cap), choices } };
}

function textDocument(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    text: completion.text,
    logprobs: null,
    finish_reason: finishReason(completion),
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
    yield chunk("closing", index, "", finishReason(completion));
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

function finishReason({ isCut }: Completion): "length" | "stop" {
  return isCut ? "length" : "stop";
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
