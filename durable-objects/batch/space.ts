/** What a batch has stored that is no file yet, for the account of its run: its rows, and the parts of its files in R2. */
import { RUN_FLOOR_BYTES } from "../../src/limits.ts";

/** A smaller change is not reported, so that not every write of lines is: half of a child's floor. */
const STEP_BYTES = RUN_FLOOR_BYTES / 2;

export type BatchSpaceDeps = {
  /** Bytes of the rows now. */
  rowsBytes: () => number;
  /** Reports to the run's files what is stored. */
  report: (bytes: number) => Promise<void>;
};

export class BatchSpace {
  readonly #deps: BatchSpaceDeps;
  /** Null = this instance has not reported. */
  #reportedBytes: number | null = null;

  constructor(deps: BatchSpaceDeps) {
    this.#deps = deps;
  }

  /** Reports what is stored, unless it is about what was reported. `partBytes`: of the batch's files, what R2 has and no file counts. */
  async note(partBytes: number): Promise<void> {
    const bytes = this.#deps.rowsBytes() + partBytes;
    if (this.#reportedBytes !== null && Math.abs(bytes - this.#reportedBytes) < STEP_BYTES) return;
    await this.#deps.report(bytes);
    this.#reportedBytes = bytes;
  }
}
