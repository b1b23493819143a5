/**
 * When a root run reports its summary to the list of runs. It needs no timer and no row of the run: a busy run reports in turns, at
 * most once per SUMMARY_MS; one that is woken by a call now and then says it with the alarm that looks after its calls, for an instance
 * that has just begun does not know what the list has. A change of its status is reported at once, and so is what the operator sees who
 * reads its document: the list must not show something else.
 */
import { SUMMARY_LOOK_MS, SUMMARY_MS, SUMMARY_OF_DAY_MS } from "../../src/limits.ts";
import type { RunSettings, RunStatus } from "../../src/objects/methods/runs.ts";
import { summaryOf } from "../../src/objects/clients/run-summary.ts";
import { runDocumentOf } from "./document.ts";
import type { RunState } from "./state.ts";

/** What of a run decides. `isBusy`: calls of it are queued or in flight. */
export type SummaryLook = { status: RunStatus; isFinal: boolean; isBusy: boolean };

export class SummaryReports {
  readonly #everyMs: number;
  #status: RunStatus;
  #isFinal: boolean;
  /** No report before, but of a status, or of the first rest after a report of a busy run. */
  #nextMs: number;
  /** What the list has; null = not known. */
  #reported: { text: string; isBusy: boolean } | null = null;

  #lastMs = -Infinity;
  #delivered: Promise<unknown> = Promise.resolve();

  constructor(holder: RunSettings["holder"], { status, isFinal }: SummaryLook, nowMs: number) {
    this.#everyMs = holder === "directory" ? SUMMARY_OF_DAY_MS : SUMMARY_MS;
    this.#status = status;
    this.#isFinal = isFinal;
    this.#nextMs = nowMs + this.#everyMs;
  }

  /** The summary to report after a turn; null = none. `write` makes its text. */
  afterTurn(look: SummaryLook, nowMs: number, write: () => string): string | null {
    const hasTurned = look.status !== this.#status || look.isFinal !== this.#isFinal;
    // A run that rests would be shown as busy until its next call.
    const hasStopped = this.#reported?.isBusy === true && !look.isBusy;
    return hasTurned || hasStopped || nowMs >= this.#nextMs ? this.now(look, nowMs, write) : null;
  }

  /** The summary to report with the alarm; null = the list has it. */
  now(look: SummaryLook, nowMs: number, write: () => string): string | null {
    this.#status = look.status;
    this.#isFinal = look.isFinal;
    this.#lastMs = nowMs;
    // A report that comes early takes the place of the next one.
    this.#nextMs = Math.max(this.#nextMs, nowMs) + this.#everyMs;
    const text = write();
    if (text === this.#reported?.text) return null;
    this.#reported = { text, isBusy: look.isBusy };
    return text;
  }

  /** The summary to report because the operator looks at the run, whose list would show something else; null = none. */
  atLook(look: SummaryLook, nowMs: number, write: () => string): string | null {
    return nowMs < this.#lastMs + SUMMARY_LOOK_MS ? null : this.now(look, nowMs, write);
  }

  /** Sends a report behind those that are on their way. False if it has not arrived: the next one, or the alarm, makes up for it. */
  deliver(send: () => Promise<void>): Promise<boolean> {
    const lost = (): boolean => {
      this.#reported = null;
      return false;
    };
    const delivered = this.#delivered.then(send).then(() => true, lost);
    this.#delivered = delivered;
    return delivered;
  }
}

export function summaryLook(run: Pick<RunState, "statusAt" | "isFinal" | "engine">, nowMs: number): SummaryLook {
  const { queue, attempts } = run.engine;
  const isBusy = queue.readyCount + queue.delayedCount + attempts.size > 0;
  return { status: run.statusAt(nowMs), isFinal: run.isFinal, isBusy };
}

/** The summary as the list stores it. */
export function summaryText(run: RunState, nowMs: number): string {
  return JSON.stringify(summaryOf(runDocumentOf(run, nowMs), run.counters.spendByModel()));
}
