/** Turns events into output: a redrawn screen, or plain lines with the final state. */
import type { WatchEvent } from "./event.ts";
import { historyOf, type HistoryStyle } from "./history.ts";
import { fold } from "./model.ts";
import { render } from "./render.ts";
import { Screen } from "./screen.ts";
import { cut } from "./text.ts";
import { durationText } from "./units.ts";
import { newView } from "./view.ts";

/** Rows that a history line may take: the result of a group can be wider than a narrow terminal. */
const HISTORY_ROWS_MAX = 2;

export type DisplayOptions = {
  runId: string;
  style: HistoryStyle;
  /** Whether the last lines are redrawn in place, with escape codes. */
  redraws: boolean;
  /** Epoch ms. */
  now: () => number;
  size: () => { columns: number; rows: number };
};

export class Display {
  readonly #options: DisplayOptions;
  readonly #view = newView();
  readonly #screen = new Screen();
  #history: string[] = [];
  /** Until then nothing is drawn: a run that does not exist must not look like an empty one. */
  #found = false;
  #connected = false;
  #lostAtMs: number | null = null;

  constructor(options: DisplayOptions) {
    this.#options = options;
  }

  /** Lines that are not written yet. */
  get backlog(): number {
    return this.#history.length;
  }

  events(events: readonly WatchEvent[]): void {
    this.#found = true;
    for (const event of events) {
      this.#history.push(...historyOf(this.#view, event, this.#options.style));
      fold(this.#view, event);
    }
  }

  /** Reports only the first of several failures in a row. */
  lost(why: string, delayMs: number): void {
    this.#connected = false;
    if (this.#lostAtMs !== null) return;
    this.#lostAtMs = this.#options.now();
    this.#history.push(`! ${why} Retrying in ${durationText(delayMs, 1)}.`);
  }

  connected(): void {
    this.#found = true;
    this.#connected = true;
    if (this.#lostAtMs === null) return;
    this.#history.push(`! Reconnected after ${durationText(this.#options.now() - this.#lostAtMs, 1)}.`);
    this.#lostAtMs = null;
  }

  /** The next output. */
  frame(): string {
    if (!this.#found) return "";
    const { columns } = this.#options.size();
    const history = this.#history;
    this.#history = [];
    if (!this.#options.redraws) return history.map((line) => `${line}\n`).join("");
    return this.#screen.draw(
      history.map((line) => cut(line, HISTORY_ROWS_MAX * columns)),
      this.#state(columns),
      columns,
    );
  }

  /** The last output. */
  close(): string {
    const rest = this.frame();
    if (this.#options.redraws) return `${rest}${this.#screen.close()}`;
    const state = !this.#found ? [] : this.#state(Number.POSITIVE_INFINITY);
    return `${rest}${state.map((line) => `${line}\n`).join("")}`;
  }

  #state(columns: number): string[] {
    const { runId, redraws, now, size } = this.#options;
    return render(this.#view, {
      runId,
      columns,
      rows: size().rows,
      nowMs: now(),
      connected: this.#connected || !redraws,
    });
  }
}
