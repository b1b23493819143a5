/**
 * What a run's files, uploads, contexts and batches count in the run's account. What clients store is asked for before; what batches write
 * is reported.
 */
import type { Reason } from "../../src/errors.ts";
import { RUN_FLOOR_BYTES } from "../../src/limits.ts";

export type FilesSpaceDeps = {
  /** What is stored now: rows, and contents in R2. */
  storedBytes: () => number;
  /**
   * Reports to the run how much is stored, with what comes now. Null, or why the run has no room for more. `isStored`: it is there already,
   * and counts in any case.
   */
  report: (bytes: number, isStored: boolean) => Promise<Reason | null>;
};

export class FilesSpace {
  readonly #deps: FilesSpaceDeps;
  /** What the run knows of, in whole steps, so that not every small context asks it; null = this instance has not reported. */
  #reportedBytes: number | null = null;
  /** What is about to be stored. */
  #pendingBytes = 0;

  constructor(deps: FilesSpaceDeps) {
    this.#deps = deps;
  }

  /** Takes room for so much more; null, or why there is none. What has room must be followed by `stored`. */
  async take(bytes: number): Promise<Reason | null> {
    this.#pendingBytes += bytes;
    const total = this.#total();
    if (this.#reportedBytes !== null && total <= this.#reportedBytes) return null;
    const full = await this.#deps.report(total, false);
    if (full === null) this.#reportedBytes = Math.max(this.#reportedBytes ?? 0, total);
    else this.#pendingBytes -= bytes;
    return full;
  }

  /** What room was taken for is stored, or was given up. */
  stored(bytes: number): void {
    this.#pendingBytes -= bytes;
  }

  /** Something was deleted, so that the run has room again, or was stored without being asked for. */
  async report(): Promise<void> {
    const total = this.#total();
    if (total === this.#reportedBytes) return;
    await this.#deps.report(total, true);
    this.#reportedBytes = total;
  }

  #total(): number {
    return Math.ceil((this.#deps.storedBytes() + this.#pendingBytes) / STEP_BYTES) * STEP_BYTES;
  }
}

/** Half of a child's floor, so that a small context does not make the child ask its root. */
const STEP_BYTES = RUN_FLOOR_BYTES / 2;
