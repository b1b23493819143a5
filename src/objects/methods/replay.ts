/** Replay: answers that a run has recorded, for calls with the same content. */
import type { AnswerParts } from "../../call.ts";

/**
 * A run's rule: its answers are recorded and replayed. `from`: another run whose recorded answers it replays, too. `inherited`:
 * that is its parent, which counts the child's calls among its own: in an epoch, it gives each answer once.
 */
export type ReplayRule = { from: string | null; inherited?: true };

/** A recorded answer. */
export type Recorded = {
  text: string;
  /** What the answer has beside its text; absent = nothing. */
  parts?: AnswerParts;
  model: string;
  finishReason: string | null;
  /** Who answered a call that asked for a route. */
  upstream?: string;
  /** True if the text was checked against the call's schema. */
  isJson?: true;
  /** Set if `text` is a whole response body of a relayed request: its content type. */
  contentType?: string;
};

/** A recorded answer with its id within its run. */
export type NamedAnswer = Recorded & { id: string };

/** What one run requests of another's recorded answers: `count` of a key, without those that it has had. */
export type AnswersWanted = { key: string; without: string[]; count: number };

/** Calls of a child run, of one content, each of which takes an answer of its parent as a call of the parent itself would. */
export type AnswersToTake = { epoch: string; key: string; calls: string[] };

/** Which answer a single call's attempt made: its key and epoch, and what the outcome does not say of it. */
export type RecordedCall = { key: string; epoch: string } & Pick<Recorded, "upstream" | "contentType">;

/** Whether a run records at all; null: there is no such run, or the caller may not read it. */
export type ReplaySource = { records: boolean } | null;
