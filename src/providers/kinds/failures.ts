/** How a kind of upstream reports failures, and what they mean. */
import type { StopReason } from "../../call.ts";
import { isFinal, treatmentOf, type ErrorsCost, type Treatment } from "../failure-table.ts";
import { errorIn, errorWords, type AnswerError, type ErrorWords } from "../formats/response/error.ts";
import { stopOf } from "../limits/stop.ts";

export type Failures = {
  /** The error in a parsed answer whose status is that of a success; null = there is none. */
  errorIn: (json: unknown) => AnswerError | null;
  /** The message and the codes in the body of a failure. */
  wordsOf: (text: string) => ErrorWords;
  /** Whether a failure is free, and whether another attempt may succeed. */
  treatmentOf: (status: number, codes: readonly string[], errorsCost: ErrorsCost) => Treatment;
  /** Whether an error with these codes is final, whatever its status. */
  isFinal: (codes: readonly string[]) => boolean;
  /** Why a failure says that its key cannot be used; null = it does not. */
  stopOf: (status: number, words: ErrorWords) => StopReason | null;
};

/** The tables of all providers: who speaks OpenAI's protocol may use the words of any of them. */
export const COMMON_FAILURES: Failures = { errorIn, wordsOf: errorWords, treatmentOf, isFinal, stopOf };
