/**
 * What all runs have counted at one gate. A run's meter has all that it has counted there since its begin, under a number that
 * grows with each count: the gate keeps the last one of each run, and adds what the next one has more. So a meter may come late,
 * twice or never again, and counts once; nobody has to remember what was acknowledged.
 *
 * The gate does not get a meter with each report. It stores the names of the runs that may have counted more than it has: with the
 * first exchange, before the run has its grant. A reader visits these.
 */
import { GATE_MARKS_MAX, METERED_MODELS_MAX, METERS_ENDED_KEPT_DAYS, METERS_KEPT_DAYS } from "../limits.ts";
import { addSheet, sheetSince, type MeterSheet } from "./meter.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** All that a run has counted at a gate. */
export type RunMeter = {
  run: string;
  /** Grows with each count: a meter with a lower or the same number has nothing new. */
  number: number;
  sheet: MeterSheet;
  /**
   * `active`: the run may count more without telling the gate. `idle`: it exchanges with the gate before it counts more.
   * `ended`: it never counts again.
   */
  state: "active" | "idle" | "ended";
};

/** A run that may have counted more than its gate has. `mark` changes with each exchange: it says until when this was so. */
export type UnreadRun = { run: string; mark: string };

/** A meter that is brought to a gate. `mark`: of the reading for which the run was visited; null = the run brings it itself. */
export type BroughtMeter = RunMeter & { mark: string | null };

/** What a gate keeps of a run that has counted something. `day`: of the last change, days since 1970. */
export type CountedRun = { number: number; sheet: MeterSheet; hasEnded: boolean; day: number };

/** Where the sums are stored. All that one method of GateMeters writes is stored together, or nothing of it. */
export interface MeterRows {
  sheet(): MeterSheet;
  storeSheet(sheet: Readonly<MeterSheet>): void;
  run(id: string): CountedRun | null;
  storeRun(id: string, run: CountedRun): void;
  isUnread(id: string): boolean;
  addUnread(id: string, day: number): void;
  removeUnread(id: string): void;
  /** Unread runs by name, from the first after `after` on. */
  unreadAfter(after: string, most: number): string[];
  unreadCount(): number;
  /** Drops what has not changed since these days. */
  drop(before: { ended: number; any: number }): void;
}

const DAY_MS = 86_400_000;

export class GateMeters {
  readonly #rows: MeterRows;
  readonly #epoch: number;
  #sheet: MeterSheet;
  /** Exchanges of the runs that are known to be unread, by run: one that exchanges between two looks has another number then. */
  readonly #exchanges = new BoundedMap<string, number>(GATE_MARKS_MAX);
  #exchangeCount = 0;
  /** The run that was listed last: runs take turns. */
  #listed: string;
  /** When rows were last dropped; null = this instance has not looked. */
  #droppedDay: number | null = null;

  /**
   * @param epoch Names the instance.
   * @param from Any name: the first list begins after it.
   */
  constructor(rows: MeterRows, { epoch, from }: { epoch: number; from: string }) {
    this.#rows = rows;
    this.#epoch = epoch;
    this.#listed = from;
    this.#sheet = rows.sheet();
  }

  /** What all runs have counted, as far as it is known: all of it is stored, so that it never becomes less. */
  get sheet(): Readonly<MeterSheet> {
    return this.#sheet;
  }

  /** A run exchanges: from now on it may count more. Stored when this returns. */
  exchanged(run: string, nowMs: number): void {
    this.#mayCount(run, dayOf(nowMs));
  }

  #mayCount(run: string, day: number): void {
    if (!this.#exchanges.has(run) && !this.#rows.isUnread(run)) this.#rows.addUnread(run, day);
    this.#exchangeCount += 1;
    this.#exchanges.set(run, this.#exchangeCount);
  }

  /** Runs that may have counted more than the gate has: `most` of them, others with each call; and how many there are in all. */
  unread(most: number): { runs: UnreadRun[]; count: number } {
    const count = this.#rows.unreadCount();
    const next = this.#rows.unreadAfter(this.#listed, most);
    const again = next.length < most && next.length < count ? this.#rows.unreadAfter("", most - next.length) : [];
    const runs = [...new Set([...next, ...again])];
    this.#listed = runs.at(-1) ?? this.#listed;
    return { runs: runs.map((run) => ({ run, mark: this.#markOf(run) })), count };
  }

  /** Adds what these meters have more than those before. Stored when this returns. */
  take(meters: readonly BroughtMeter[], nowMs: number): void {
    const day = dayOf(nowMs);
    const sum = structuredClone(this.#sheet);
    let hasNews = false;
    for (const meter of meters) {
      const isNew = this.#takeOne(meter, sum, day);
      hasNews ||= isNew;
      this.#note(meter, day);
    }
    if (hasNews) this.#store(sum);
    if (this.#droppedDay === day) return;
    this.#droppedDay = day;
    this.#rows.drop({ ended: day - METERS_ENDED_KEPT_DAYS, any: day - METERS_KEPT_DAYS });
  }

  /** Whether the meter had something new. */
  #takeOne({ run, number, sheet, state }: BroughtMeter, sum: MeterSheet, day: number): boolean {
    const known = this.#rows.run(run);
    const isNew = number > (known?.number ?? 0);
    if (isNew) addSheet(sum, sheetSince(sheet, known?.sheet ?? {}), METERED_MODELS_MAX);
    const hasEnded = state === "ended" || known?.hasEnded === true;
    if (isNew) this.#rows.storeRun(run, { number, sheet, hasEnded, day });
    else if (known !== null && known.hasEnded !== hasEnded) this.#rows.storeRun(run, { ...known, hasEnded, day });
    return isNew;
  }

  /** Notes whether a run may count more. One that has told the gate so since it was listed may, whatever it said then. */
  #note({ run, state, mark }: BroughtMeter, day: number): void {
    if (mark === null && state === "active") return this.#mayCount(run, day);
    const isUnread = this.#exchanges.has(run) || this.#rows.isUnread(run);
    const isRead = state === "ended" || (state === "idle" && mark === this.#markOf(run));
    if (isRead && isUnread) this.#rows.removeUnread(run);
    if (isRead) this.#exchanges.delete(run);
    else if (!isUnread) this.#rows.addUnread(run, day);
  }

  #markOf(run: string): string {
    return `${this.#epoch}/${this.#exchanges.get(run) ?? 0}`;
  }

  #store(sum: MeterSheet): void {
    this.#rows.storeSheet(sum);
    this.#sheet = sum;
  }
}

function dayOf(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS);
}
