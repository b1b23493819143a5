/** The parts of an answer on their way from its reader to its replies. */
import type { AnswerParts } from "./call.ts";

/** An answer as it is stored: the text is null while there is none. */
export type StoredAnswer = { text?: string | null | undefined; parts?: AnswerParts | undefined };

/** The field `parts` of an answer, to be spread into another object: nothing if it has none. */
export function partsOf({ parts }: Pick<StoredAnswer, "parts">): { parts?: AnswerParts } {
  return parts === undefined ? {} : { parts };
}

/** Characters of an answer, for what is bounded by them. */
export function answerChars({ text, parts }: StoredAnswer): number {
  return (text?.length ?? 0) + (parts === undefined ? 0 : partsChars(parts));
}

/** Characters of the parts of an answer. */
export function partsChars({ message = "", logprobs = "", transcript = "" }: AnswerParts): number {
  return message.length + logprobs.length + transcript.length;
}
