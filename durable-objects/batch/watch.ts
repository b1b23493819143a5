/**
 * Watches the groups of a batch that are open in its run: which of them have ended, and how much of the others is left.
 * The batch is fed by what is left: a slow line keeps its group open, but does not keep the next lines from starting.
 */
import { BATCH_CHUNKS_OPEN, BATCH_GROUPS_OPEN_MAX, BATCH_LOOK_MS_MAX } from "../../src/limits.ts";
import type { GroupView } from "../../src/run-api/groups.ts";
import type { RunCaller } from "../../src/run-client/caller.ts";
import type { Progress } from "./progress.ts";
import type { Chunk } from "./store.ts";

/** Shortest pause between two looks at a group, ms. */
const PAUSE_MS_MIN = 200;

type Seen = { view: GroupView | null; ended: number };

/** What looks at one group have shown. */
export type Pace = {
  /** Slots that had not ended at the last look. */
  left: number;
  /** Slots that ended between the last two looks, and the time between them, ms. */
  moved: number;
  elapsedMs: number;
};

/**
 * Pause before the next look, ms: half of the time in which the first group would end at its pace, so that few looks find
 * nothing and none comes much too late; twice the last pause if no slot has ended since.
 */
export function pauseMs(groups: readonly Pace[], lastMs: number): number {
  let next = lastMs * 2;
  for (const { left, moved, elapsedMs } of groups) {
    if (moved > 0) next = Math.min(next, (left * elapsedMs) / moved / 2);
  }
  return Math.min(BATCH_LOOK_MS_MAX, Math.max(PAUSE_MS_MIN, Math.round(next)));
}

export class Watch {
  readonly #run: RunCaller;
  readonly #progress: Progress;
  /** The last state of each group, by its number in the run. */
  readonly #seen = new Map<number, Seen>();
  #lookedAtMs: number | null = null;
  #pauseMs = PAUSE_MS_MIN / 2;

  constructor(run: RunCaller, progress: Progress) {
    this.#run = run;
    this.#progress = progress;
  }

  /** Whether another group may be opened: few are open, and little of them is left. */
  hasRoom(chunks: readonly Chunk[]): boolean {
    if (chunks.length >= BATCH_GROUPS_OPEN_MAX) return false;
    let left = 0;
    for (const { seq, count } of chunks) left += 1 - (this.#seen.get(seq)?.ended ?? 0) / count;
    return left <= BATCH_CHUNKS_OPEN - 1;
  }

  /** Looks at the groups. A group that has ended; null if none has. */
  async look(chunks: readonly Chunk[], nowMs: number): Promise<Chunk | null> {
    const known = this.#ended(chunks);
    if (known !== null) return known;
    const elapsedMs = nowMs - (this.#lookedAtMs ?? nowMs);
    const paces = await Promise.all(chunks.map((chunk) => this.#read(chunk, elapsedMs)));
    this.#lookedAtMs = nowMs;
    this.#pauseMs = pauseMs(paces, this.#pauseMs);
    return this.#ended(chunks);
  }

  /** Pause before the next look, ms. */
  get pauseMs(): number {
    return this.#pauseMs;
  }

  /** The lines of the group are written. */
  forget({ seq }: Chunk): void {
    this.#seen.delete(seq);
  }

  #ended(chunks: readonly Chunk[]): Chunk | null {
    const hasEnded = (seen: Seen | undefined) => seen !== undefined && seen.view?.status !== "running";
    return chunks.find(({ seq }) => hasEnded(this.#seen.get(seq))) ?? null;
  }

  async #read(chunk: Chunk, elapsedMs: number): Promise<Pace> {
    const { seq } = chunk;
    const before = this.#seen.get(seq)?.ended ?? 0;
    const view = await this.#run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
    if (view !== null) this.#progress.update(chunk, view);
    const ended = view === null ? chunk.count : view.count - view.counts.queued - view.counts.running;
    this.#seen.set(seq, { view, ended });
    return { left: chunk.count - ended, moved: ended - before, elapsedMs };
  }
}
