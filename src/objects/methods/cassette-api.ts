/** The methods of a cassette object: the tape of one name, which all runs share whose calls go to its upstreams. */
import type { CassetteMode, TapedAnswer, TapedRequest } from "../../recordings/types.ts";
import type { Reason } from "../../errors.ts";

/** An attempt at a call, as a tape counts it. `key`: the hash of its request. */
export type TapeUse = { runId: string; attemptId: string; key: string; mode: CassetteMode };

/** The answer that an attempt gets, or how many answers to its request its runs have had before. */
export type Taken = { answer: TapedAnswer } | { had: number };

/** An exchange as it is stored. `line`: as JSON; `text`: what it is compared by. */
export type TapeLine = { key: string; line: string; text: string };

/**
 * Of a tape. `unrecorded`: answers that were too long, or came when it was full; `misses`: requests that were refused because it has
 * no answer, and `lastMisses` what they were refused with: all since it was emptied or loaded.
 */
export type TapeFacts = {
  exchanges: number;
  bytes: number;
  unrecorded: number;
  recordedAtMs: number | null;
  misses: number;
  lastMisses: string[];
};

export interface CassetteApi extends Rpc.DurableObjectBranded {
  /**
   * The next answer to a request. The n-th equal request of a run gets the n-th answer; a run and its child runs count
   * together. Safe to repeat.
   */
  take(use: TapeUse): Promise<Taken>;

  /** Why a request that is not on the tape is refused: it names the most similar recorded request. `had`: as returned by `take`. */
  miss(request: TapedRequest, text: string, had: number): Reason;

  /** Records an attempt's answer, in place of the one that an earlier run has recorded there. Null = it is too long. Safe to repeat. */
  record(use: TapeUse, line: TapeLine | null): Promise<void>;

  facts(): TapeFacts;

  /** Exchanges in order, as lines, from number `from` on. Empty = there are no more. */
  lines(from: number): string[];

  /** Replaces the tape by these exchanges, or adds them to those that were loaded before. False = there is no room. */
  load(lines: TapeLine[], isFirst: boolean): boolean;

  clear(): void;
}
