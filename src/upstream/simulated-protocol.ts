/** What the simulated upstream needs of each protocol: to read a request, and to write an answer whole or in pieces. */
import type { Frame } from "./simulated-stream.ts";
import type { Completion } from "./simulated-tokens.ts";

/** A request in no protocol's words. */
export type Asked = {
  /** What the model answers; the completions endpoint alone takes several. */
  prompts: readonly string[];
  /** Tokens of all that was sent, of all prompts together. */
  promptTokens: number;
  /** Most tokens of each completion; infinite where none is named. */
  capTokens: number;
  /** Completions of each prompt. 0 = the endpoint writes no text. */
  choices: number;
};

/** A request as asked, or why it is none. */
export type Read = { ok: true; asked: Asked } | { ok: false; message: string };

/** What an answer is made of. */
export type Job = {
  request: Readonly<Record<string, unknown>>;
  asked: Asked;
  /** The model id as the request names it. */
  model: string;
  /** Tells answers to different prompts apart; stands in every id. */
  id: string;
  createdS: number;
  /** The first prompt's choices, then the second's, and so on. */
  completions: readonly Completion[];
  /** Of all completions together. */
  completionTokens: number;
};

export type Protocol = {
  read: (request: Readonly<Record<string, unknown>>) => Read;
  /** The JSON document of an answer that is not streamed. */
  document: (job: Job) => unknown;
  /** The events of a streamed answer, in order; `split` cuts a text into its pieces. Null = is never streamed. */
  frames: ((job: Job, split: (text: string) => readonly string[]) => Iterable<Frame>) | null;
  /** The JSON document of an error. */
  error: (status: number, message: string) => unknown;
};

/** Most completions of one prompt, as OpenAI's API has it. */
const CHOICES_MAX = 128;

/** How many completions a request asks for; null = not a number that may be asked for. */
export function choicesIn(value: unknown): number | null {
  if (value === undefined || value === null) return 1;
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= CHOICES_MAX ? value : null;
}

export const WRONG_CHOICES: Read = { ok: false, message: `n must be a whole number from 1 to ${CHOICES_MAX}` };

/** The first of a request's fields that names a cap decides. */
export function capIn(...fields: readonly unknown[]): number {
  const cap = fields.find((field) => field !== undefined && field !== null);
  return typeof cap === "number" ? cap : Number.POSITIVE_INFINITY;
}
