/** Makes an attempt again where its problem may pass. */
import { Problem } from "./problem.mjs";

/** Delay before the second attempt, ms: it doubles up to the longest. */
const DELAY_MS_MIN = 500;
const DELAY_MS_MAX = 30_000;

/**
 * `sleep` rejects when the command is stopped. `trouble` hears why an attempt will be made again,
 * once for the same reason in a row.
 * @typedef {{
 *   sleep: (delayMs: number) => Promise<void>, random: () => number,
 *   trouble: (message: string, delayMs: number) => void,
 * }} AgainDeps
 */

/**
 * @template T
 * @param {() => Promise<T>} attempt
 * @param {{ attemptsMax: number, mayPass?: (problem: Problem) => boolean }} rules
 * @param {AgainDeps} deps
 * @returns {Promise<T>}
 * @throws the problem of the last attempt, or the first that will not pass.
 */
export async function again(attempt, { attemptsMax, mayPass = () => true }, { sleep, random, trouble }) {
  let delayMs = DELAY_MS_MIN;
  let told = "";
  for (let made = 1; ; made += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem) || !error.passing || made >= attemptsMax || !mayPass(error)) throw error;
      // Of many clients that a restart has turned away, not all come back at once.
      const jittered = delayMs * (0.75 + random() / 4);
      const waitMs = Math.min(DELAY_MS_MAX, Math.max(error.afterMs ?? 0, jittered));
      if (error.message !== told) trouble(error.message, waitMs);
      told = error.message;
      await sleep(waitMs);
      delayMs = Math.min(2 * delayMs, DELAY_MS_MAX);
    }
  }
}
