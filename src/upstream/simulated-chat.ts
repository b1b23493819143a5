/** Chat completions, as the simulated upstream reads and writes them. */
import { completionUsage, finishReason, inTurns, usageFrames, usageToCome } from "./simulated-choices.ts";
import { lastUserText, messageTexts } from "./simulated-conversation.ts";
import { capIn, choicesIn, type Job, type Protocol, type Read, WRONG_CHOICES } from "./simulated-protocol.ts";
import { openaiError } from "./simulated-reply.ts";
import { dataFrame, DONE, type Frame } from "./simulated-stream.ts";
import { tokensOf } from "./simulated-tokens.ts";

export const chat: Protocol = { read, document, frames, error: openaiError };

function read(request: Job["request"]): Read {
  const { messages, n, max_completion_tokens: cap, max_tokens: olderCap } = request;
  if (!Array.isArray(messages)) return { ok: false, message: "messages must be an array" };
  const choices = choicesIn(n);
  if (choices === null) return WRONG_CHOICES;
  const prompts = [lastUserText(messages)];
  const promptTokens = tokensOf(messageTexts(messages));
  return { ok: true, asked: { prompts, promptTokens, capTokens: capIn(cap, olderCap), choices } };
}

function document(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    message: { role: "assistant", content: completion.text, refusal: null },
    logprobs: null,
    finish_reason: finishReason(completion),
  }));
  return { ...headOf(job, "chat.completion"), choices, usage: completionUsage(job) };
}

function* frames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  const head = headOf(job, "chat.completion.chunk");
  const chunk = (part: Frame["part"], index: number, delta: unknown, reason: string | null): Frame => {
    const choice = { index, delta, logprobs: null, finish_reason: reason };
    return dataFrame(part, { ...head, choices: [choice], ...usageToCome(job) });
  };
  for (const index of job.completions.keys()) {
    yield chunk("opening", index, { role: "assistant", content: "", refusal: null }, null);
  }
  for (const { index, piece } of inTurns(job.completions, split)) yield chunk("piece", index, { content: piece }, null);
  for (const [index, completion] of job.completions.entries()) {
    yield chunk("closing", index, {}, finishReason(completion));
  }
  yield* usageFrames(job, head);
  yield DONE;
}

function headOf({ id, createdS, model }: Job, object: string) {
  return { id: `chatcmpl-sim-${id}`, object, created: createdS, model };
}
