/** The progress of a batch as one line of text. Pure: times and widths are arguments. */
import { countText, durationText, usdText } from "../text/amounts.ts";

/** `unit` is "bytes" while the file is uploaded. `perSecond` and `costUsd` are null if unknown. */
export type Progress = {
  phase: string;
  unit: "lines" | "bytes";
  done: number;
  total: number;
  failed: number;
  perSecond: number | null;
  costUsd: number | null;
};

const BAR_COLUMNS_MAX = 30;
const BAR_COLUMNS_MIN = 8;
/** Time over which the rate is averaged, ms: long enough to be steady, short enough to show throttling. */
const WINDOW_MS = 30_000;

/** Lines per second over the last half minute. */
export class Rate {
  #samples: { atMs: number; done: number }[] = [];

  /** Returns null until there are two samples. */
  add(atMs: number, done: number): number | null {
    this.#samples.push({ atMs, done });
    while (this.#samples.length > 2 && (this.#samples[1]?.atMs ?? atMs) <= atMs - WINDOW_MS) this.#samples.shift();
    const first = this.#samples[0] ?? { atMs, done };
    const elapsedMs = atMs - first.atMs;
    return elapsedMs <= 0 ? null : (Math.max(0, done - first.done) * 1000) / elapsedMs;
  }
}

/** The line, at most `columns` wide: a wide line has a bar, a narrow one is cut at its end. */
export function progressLine(progress: Progress, columns: number): string {
  const facts = factsOf(progress).join(" · ");
  const room = columns - facts.length - 4;
  const bar =
    progress.total > 0 && room >= BAR_COLUMNS_MIN ? `${barOf(progress, Math.min(room, BAR_COLUMNS_MAX))} ` : "";
  return `${bar}${facts}`.slice(0, Math.max(0, columns - 1));
}

function factsOf({ phase, unit, done, total, failed, perSecond, costUsd }: Progress) {
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

function barOf({ done, total }: Progress, columns: number) {
  const full = Math.floor((columns * Math.min(done, total)) / total);
  return `${"█".repeat(full)}${"░".repeat(columns - full)}`;
}

function megabytes(bytes: number) {
  return (bytes / 1024 / 1024).toFixed(1);
}
