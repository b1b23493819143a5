/** Text completions, as the simulated upstream reads and writes them. */
import { completionUsage, finishReason, inTurns, usageFrames, usageToCome } from "./simulated-choices.ts";
import { textsIn, TEXTS_EXPECTED } from "./simulated-inputs.ts";
import { capIn, choicesIn, type Job, type Protocol, type Read, WRONG_CHOICES } from "./simulated-protocol.ts";
import { openaiError } from "./simulated-reply.ts";
import { dataFrame, DONE, type Frame } from "./simulated-stream.ts";

export const completions: Protocol = { read, document, frames, error: openaiError };

function read(request: Job["request"]): Read {
  const { prompt, n, max_tokens: cap } = request;
  const given = textsIn(prompt);
  if (given === null) return { ok: false, message: `prompt must be ${TEXTS_EXPECTED}` };
  const choices = choicesIn(n);
  if (choices === null) return WRONG_CHOICES;
  return { ok: true, asked: { prompts: given.texts, promptTokens: given.tokens, capTokens: capIn(cap), choices } };
}

function document(job: Job): unknown {
  const choices = job.completions.map((completion, index) => ({
    index,
    text: completion.text,
    logprobs: null,
    finish_reason: finishReason(completion),
  }));
  return { ...headOf(job), choices, usage: completionUsage(job) };
}

function* frames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  const head = headOf(job);
  const chunk = (part: Frame["part"], index: number, text: string, reason: string | null): Frame => {
    const choice = { index, text, logprobs: null, finish_reason: reason };
    return dataFrame(part, { ...head, choices: [choice], ...usageToCome(job) });
  };
  for (const { index, piece } of inTurns(job.completions, split)) yield chunk("piece", index, piece, null);
  for (const [index, completion] of job.completions.entries()) {
    yield chunk("closing", index, "", finishReason(completion));
  }
  yield* usageFrames(job, head);
  yield DONE;
}

function headOf({ id, createdS, model }: Job) {
  return { id: `cmpl-sim-${id}`, object: "text_completion", created: createdS, model };
}
