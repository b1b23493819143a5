/** Turns events into output: a redrawn screen, or plain lines with the final state. */
import { stepOfRun, type WatchEvent } from "./event.ts";
import { historyOf, type HistoryStyle } from "./history.ts";
import { fold } from "./model.ts";
import { render, renderTree } from "./render.ts";
import { Screen } from "./screen.ts";
import { cut } from "./text.ts";
import type { RunPlace } from "./tree.ts";
import { durationText } from "./units.ts";
import { newView, type View } from "./view.ts";

/** Rows that a history line may take: the result of a group can be wider than a narrow terminal. */
const HISTORY_ROWS_MAX = 2;

/** Characters of the id of a run below that are shown: the whole would fill a narrow terminal. */
const ID_CHARS_MAX = 12;

export type DisplayOptions = {
  runId: string;
  style: HistoryStyle;
  /** Whether the last lines are redrawn in place, with escape codes. */
  redraws: boolean;
  /** Whether runs below it are shown; absent = they are not. */
  tree?: boolean;
  /** Epoch ms. */
  now: () => number;
  size: () => { columns: number; rows: number };
};

/** A run that is shown, and what is known of its connection. `step`: the last that its calls and its client's events have named. */
type Shown = {
  place: RunPlace;
  view: View;
  depth: number;
  step: string | null;
  connected: boolean;
  lostAtMs: number | null;
};

export class Display {
  readonly #options: DisplayOptions;
  readonly #screen = new Screen();
  readonly #root: RunPlace;
  /** By id; parents before their children. */
  readonly #runs = new Map<string, Shown>();
  #history: string[] = [];
  /** Until then nothing is drawn: a run that does not exist must not look like an empty one. */
  #found = false;

  constructor(options: DisplayOptions) {
    this.#options = options;
    this.#root = { id: options.runId, parent: null, level: 0 };
    this.#shown(this.#root);
  }

  /** Lines that are not written yet. */
  get backlog(): number {
    return this.#history.length;
  }

  events(events: readonly WatchEvent[], place: RunPlace = this.#root): void {
    this.#found = true;
    const run = this.#shown(place);
    for (const event of events) {
      run.depth = event.depth;
      run.step = stepOfRun(event) ?? run.step;
      this.#tell(place, historyOf(run.view, event, this.#options.style));
      fold(run.view, event);
    }
  }

  /** Reports only the first of several failures in a row. */
  lost(why: string, delayMs: number, place: RunPlace = this.#root): void {
    const run = this.#shown(place);
    run.connected = false;
    if (run.lostAtMs !== null) return;
    run.lostAtMs = this.#options.now();
    this.#tell(place, [`! ${why} Retrying in ${durationText(delayMs, 1)}.`]);
  }

  connected(place: RunPlace = this.#root): void {
    this.#found = true;
    const run = this.#shown(place);
    run.connected = true;
    if (run.lostAtMs === null) return;
    this.#tell(place, [`! Reconnected after ${durationText(this.#options.now() - run.lostAtMs, 1)}.`]);
    run.lostAtMs = null;
  }

  /** A run below is not followed any more. */
  left(place: RunPlace, problem: string | null): void {
    if (problem !== null) this.#tell(place, [`! ${problem}`]);
    this.#runs.delete(place.id);
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

  /** A run below says in each line which one it is. */
  #tell({ id, level }: RunPlace, lines: readonly string[]): void {
    const prefix = level === 0 ? "" : `${"  ".repeat(level)}${labelOfRun(id)} `;
    this.#history.push(...lines.map((line) => `${prefix}${line}`));
  }

  #shown(place: RunPlace): Shown {
    const known = this.#runs.get(place.id);
    if (known !== undefined) return known;
    const run: Shown = {
      ...{ place, view: newView(), depth: place.level, step: null },
      ...{ connected: false, lostAtMs: null },
    };
    this.#runs.set(place.id, run);
    return run;
  }

  #state(columns: number): string[] {
    const { redraws, now, size, tree = false } = this.#options;
    const frame = { columns, rows: size().rows, nowMs: now() };
    const root = this.#shown(this.#root);
    if (!tree) {
      const { place, view, depth, step, connected } = root;
      return render(view, { ...frame, runId: place.id, connected: connected || !redraws, where: { depth, step } });
    }
    const runs = this.#inOrder(root).map(({ place: { id, level }, ...run }) => {
      return { id: level === 0 ? id : labelOfRun(id), level, ...run, connected: run.connected || !redraws };
    });
    return renderTree(runs, frame);
  }

  /** A run, then those below it; a run that has ended is only shown as the first, or above others. */
  #inOrder(run: Shown): Shown[] {
    const below = [...this.#runs.values()]
      .filter(({ place }) => place.parent === run.place.id)
      .flatMap((child) => this.#inOrder(child));
    return run.place.level === 0 || run.view.ended === null || below.length > 0 ? [run, ...below] : [];
  }
}

/** How a run below is called: enough of its id to tell it from others. Its parent has told the whole one when it was opened. */
function labelOfRun(id: string): string {
  return id.length > ID_CHARS_MAX ? `${id.slice(0, ID_CHARS_MAX)}…` : id;
}
