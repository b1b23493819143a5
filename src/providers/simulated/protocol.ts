/** What the simulated upstream needs of each protocol: reading a request, and writing an answer as JSON or as a stream. */
import { answersIn, promptOf, textsOf, toolRounds, type Turn } from "./conversation.ts";
import type { Format } from "./format.ts";
import type { Frame } from "./stream.ts";
import { type Completion, tokensOf } from "./text.ts";
import { type Tools, toolsIn } from "./tools.ts";

/** The part of a request that every protocol has. */
export type Input = {
  /** The prompts to answer: one, but for text completions and embeddings. */
  prompts: readonly string[];
  /** Tokens of everything that was sent, all prompts together. */
  promptTokens: number;
  /** Most tokens of each completion; infinite if the request has no cap. */
  capTokens: number;
  /** Completions of each prompt. 0 = the endpoint writes no text. */
  choices: number;
  /** Null where the endpoint knows neither schemas nor tools. */
  structured: StructuredInput | null;
};

/** What chat completions, Responses and messages may ask for beside text. */
export type StructuredInput = {
  format: Format;
  tools: Tools;
  /** Answers of tools since the last text of the user. */
  toolRounds: number;
  /** Texts that the model has written in this conversation. */
  answers: number;
};

/** A call that the answer makes instead of giving a text; the completion's text is its arguments as JSON. */
export type ToolCall = { name: string; round: number };

/** The input of a request, or the message to refuse it with. */
export type Read = { ok: true; input: Input } | { ok: false; message: string };

/** Everything from which an answer is written. */
export type Job = {
  request: Readonly<Record<string, unknown>>;
  input: Input;
  /** The model id as the request names it. */
  model: string;
  /** Part of every id in the answer; differs between prompts. */
  id: string;
  createdS: number;
  /** The first prompt's choices, then the second's, and so on. */
  completions: readonly Completion[];
  /** Of all completions together. */
  completionTokens: number;
  /** Null = the completions are texts. */
  call: ToolCall | null;
};

export type Protocol = {
  read: (request: Readonly<Record<string, unknown>>) => Read;
  /** The JSON document of an answer that is not streamed. */
  document: (job: Job) => unknown;
  /** The events of a streamed answer, in order; `split` cuts a text into deltas. Null if the endpoint has no streams. */
  frames: ((job: Job, split: (text: string) => readonly string[]) => Iterable<Frame>) | null;
  /** The JSON document of an error. */
  error: (status: number, message: string) => unknown;
};

/** The input of a request that is a conversation. */
export function conversationInput(
  request: Job["request"],
  turns: readonly Turn[],
  given: { instructions?: string; format: Format; capTokens: number; choices: number },
): Read {
  const { instructions = "", format, capTokens, choices } = given;
  const read = toolsIn(request);
  if (!read.ok) return read;
  const structured = { format, tools: read.tools, toolRounds: toolRounds(turns), answers: answersIn(turns) };
  const promptTokens = tokensOf([instructions, ...textsOf(turns)]);
  return { ok: true, input: { prompts: [promptOf(turns)], promptTokens, capTokens, choices, structured } };
}

/** The id of a call, by which the client names the tool's answer. */
export function callIdOf({ id }: Job, { round }: ToolCall, choice: number): string {
  return `call_sim_${id}_${round}_${choice}`;
}

/** Most completions of one prompt, as in OpenAI's API. */
const CHOICES_MAX = 128;

/** How many completions of each prompt a request wants; null if the value is invalid. */
export function choicesIn(value: unknown): number | null {
  if (value === undefined || value === null) return 1;
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= CHOICES_MAX ? value : null;
}

export const WRONG_CHOICES: Read = { ok: false, message: `n must be a whole number from 1 to ${CHOICES_MAX}` };

/** The cap in the first of these fields that is present; infinite if none is. */
export function capIn(...fields: readonly unknown[]): number {
  const cap = fields.find((field) => field !== undefined && field !== null);
  return typeof cap === "number" ? cap : Number.POSITIVE_INFINITY;
}

export function openaiError(status: number, message: string): unknown {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  const code = status === 404 ? "model_not_found" : null;
  // OpenAI's errors have no `retryable`; every error of the gateway has, and so does one of its own upstream.
  const retryable = status === 429 || status >= 500;
  return { error: { message, type, param: code === null ? null : "model", code, retryable } };
}

const ANTHROPIC_ERRORS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function anthropicError(status: number, message: string): unknown {
  const type = ANTHROPIC_ERRORS[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message } };
}
