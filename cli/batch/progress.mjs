/** The progress of a batch as one line of text. Pure: times and widths are arguments. */

/**
 * `unit` is "bytes" while the file is uploaded. `perSecond` and `costUsd` are null if unknown.
 * @typedef {{
 *   phase: string, unit: "lines" | "bytes", done: number, total: number, failed: number,
 *   perSecond: number | null, costUsd: number | null,
 * }} Progress
 */

const BAR_COLUMNS_MAX = 30;
const BAR_COLUMNS_MIN = 8;
/** Time over which the rate is averaged, ms: long enough to be steady, short enough to show throttling. */
const WINDOW_MS = 30_000;

/** Lines per second over the last half minute. */
export class Rate {
  /** @type {{ atMs: number, done: number }[]} */
  #samples = [];

  /**
   * @param {number} atMs
   * @param {number} done
   * @returns {number | null} null until there are two samples.
   */
  add(atMs, done) {
    this.#samples.push({ atMs, done });
    while (this.#samples.length > 2 && (this.#samples[1]?.atMs ?? atMs) <= atMs - WINDOW_MS) this.#samples.shift();
    const first = this.#samples[0] ?? { atMs, done };
    const elapsedMs = atMs - first.atMs;
    return elapsedMs <= 0 ? null : (Math.max(0, done - first.done) * 1000) / elapsedMs;
  }
}

/**
 * The line, at most `columns` wide: a wide line has a bar, a narrow one is cut at its end.
 * @param {Progress} progress
 * @param {number} columns
 */
export function progressLine(progress, columns) {
  const facts = factsOf(progress).join(" · ");
  const room = columns - facts.length - 4;
  const bar =
    progress.total > 0 && room >= BAR_COLUMNS_MIN ? `${barOf(progress, Math.min(room, BAR_COLUMNS_MAX))} ` : "";
  return `${bar}${facts}`.slice(0, Math.max(0, columns - 1));
}

/** @param {Progress} progress */
function factsOf({ phase, unit, done, total, failed, perSecond, costUsd }) {
  if (total === 0) return [phase];
  if (unit === "bytes") return [phase, `${megabytes(done)} of ${megabytes(total)} MB`];
  const facts = [phase, `${countText(done)}/${countText(total)}`];
  if (failed > 0) facts.push(`${countText(failed)} failed`);
  if (perSecond !== null) facts.push(`${perSecond >= 100 ? perSecond.toFixed(0) : perSecond.toFixed(1)}/s`);
  if (costUsd !== null) facts.push(usdText(costUsd));
  if (perSecond !== null && perSecond > 0 && done < total) {
    facts.push(`${durationText((1000 * (total - done)) / perSecond)} left`);
  }
  return facts;
}

/**
 * @param {Progress} progress
 * @param {number} columns
 */
function barOf({ done, total }, columns) {
  const full = Math.floor((columns * Math.min(done, total)) / total);
  return `${"█".repeat(full)}${"░".repeat(columns - full)}`;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return (bytes / 1024 / 1024).toFixed(1);
}

/** "1,930". @param {number} count */
export function countText(count) {
  return count.toLocaleString("en-US");
}

/**
 * Dollars for people, as the page shows them: "$12.34", "$0.0040", "$0"; what is too small for four decimals is "<$0.0001".
 * @param {number} usd
 */
export function usdText(usd) {
  if (usd <= 0) return "$0";
  if (usd < 0.000_05) return "<$0.0001";
  return usd >= 1 ? `$${DOLLARS.format(usd)}` : `$${usd.toFixed(4)}`;
}

const DOLLARS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** "42s", "1m05s", "2h03m". @param {number} durationMs */
export function durationText(durationMs) {
  const seconds = Math.round(Math.max(0, durationMs) / 1000);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`;
}
