/** The sums of all runs at one gate, and which runs may have counted more since somebody looked. */
import { GATE_UNREAD_RUNS_MAX, METERED_MODELS_MAX } from "../limits.ts";
import { addSheet, isEmpty, type MeterSheet } from "./meter.ts";

export class GateMeters {
  #sheet: MeterSheet = {};
  /** In the order of their last reports. */
  readonly #unread = new Map<string, number>();
  #hasChanged = false;

  get sheet(): Readonly<MeterSheet> {
    return this.#sheet;
  }

  /** What an earlier instance has stored. */
  restore(sheet: MeterSheet): void {
    this.#sheet = sheet;
  }

  add(sheet: Readonly<MeterSheet>): void {
    if (isEmpty(sheet)) return;
    addSheet(this.#sheet, sheet, METERED_MODELS_MAX);
    this.#hasChanged = true;
  }

  /**
   * The run has attempts here, whose ends it may never report by itself. `untilMs`: later calls make it report again, those
   * before do not.
   */
  reportedBy(run: string, untilMs: number): void {
    this.#unread.delete(run);
    this.#unread.set(run, untilMs);
    if (this.#unread.size <= GATE_UNREAD_RUNS_MAX) return;
    for (const oldest of this.#unread.keys()) {
      this.#unread.delete(oldest);
      return;
    }
  }

  /** The runs that may have counted more than they have reported, if each of them is visited now. */
  takeUnread(nowMs: number): string[] {
    const unread = [...this.#unread.keys()];
    for (const [run, untilMs] of this.#unread) if (untilMs <= nowMs) this.#unread.delete(run);
    return unread;
  }

  /** True once after each change: it is to be stored. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }
}
