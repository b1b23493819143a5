/** Retries an attempt whose problem is transient. */
import { Problem } from "./problem.ts";

/** Delay before the second attempt, ms: it doubles up to the longest. */
const DELAY_MS_MIN = 500;
const DELAY_MS_MAX = 30_000;

/**
 * `sleep` rejects when the command is stopped. `trouble` gets the reason of a retry, once for equal reasons in a row.
 */
export type RetryDeps = {
  sleep: (delayMs: number) => Promise<void>;
  random: () => number;
  trouble: (message: string, delayMs: number) => void;
};

/** @throws the problem of the last attempt, or the first that is not transient. */
export async function retry<T>(
  attempt: () => Promise<T>,
  { attemptsMax, mayRetry = () => true }: { attemptsMax: number; mayRetry?: (problem: Problem) => boolean },
  { sleep, random, trouble }: RetryDeps,
): Promise<T> {
  let delayMs = DELAY_MS_MIN;
  let reported = "";
  for (let made = 1; ; made += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem) || !error.isTransient || made >= attemptsMax || !mayRetry(error)) throw error;
      // Jitter: after a restart of the server, its clients must not all retry at the same time.
      const jittered = delayMs * (0.75 + random() / 4);
      const waitMs = Math.min(DELAY_MS_MAX, Math.max(error.afterMs ?? 0, jittered));
      if (error.message !== reported) trouble(error.message, waitMs);
      reported = error.message;
      await sleep(waitMs);
      delayMs = Math.min(2 * delayMs, DELAY_MS_MAX);
    }
  }
}
