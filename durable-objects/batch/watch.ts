/**
 * Watches the groups of a batch that are open in its run: which of them have ended, and how much of the others is left.
 * The batch is fed by what is left: a slow line keeps its group open, but does not keep the next lines from starting.
 */
import { BATCH_CHUNKS_OPEN, BATCH_GROUPS_OPEN_MAX, BATCH_WAIT_MS } from "../../src/limits.ts";
import type { GroupView } from "../../src/run-api/groups.ts";
import type { RunCaller } from "../../src/run-client/caller.ts";
import type { Progress } from "./progress.ts";
import type { Chunk } from "./store.ts";

/** How often a group whose slots end is read, ms. A group without progress is read every `BATCH_WAIT_MS`. */
const READ_MS = 200;

type Seen = { view: GroupView | null; ended: number; moves: boolean };

export class Watch {
  readonly #run: RunCaller;
  readonly #progress: Progress;
  /** The last state of each group, by its number in the run. */
  readonly #seen = new Map<number, Seen>();
  /** Reads under way, one for each group at most. */
  readonly #calls = new Map<number, Promise<void>>();

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

  /** Waits for news of one group. Returns a group that has ended; null if none has. */
  async next(chunks: readonly Chunk[]): Promise<Chunk | null> {
    const known = this.#ended(chunks);
    if (known !== null) return known;
    for (const chunk of chunks) {
      if (!this.#calls.has(chunk.seq)) this.#calls.set(chunk.seq, this.#read(chunk));
    }
    await Promise.race(this.#calls.values());
    return this.#ended(chunks);
  }

  /** The lines of the group are written. */
  forget({ seq }: Chunk): void {
    this.#seen.delete(seq);
    this.#calls.delete(seq);
  }

  #ended(chunks: readonly Chunk[]): Chunk | null {
    const hasEnded = (seen: Seen | undefined) => seen !== undefined && seen.view?.status !== "running";
    return chunks.find(({ seq }) => hasEnded(this.#seen.get(seq))) ?? null;
  }

  async #read(chunk: Chunk): Promise<void> {
    const { seq } = chunk;
    const before = this.#seen.get(seq);
    const waitMs = before?.moves === false ? BATCH_WAIT_MS : READ_MS;
    const view = await this.#run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, waitMs));
    this.#calls.delete(seq);
    if (view !== null) this.#progress.update(chunk, view);
    const ended = view === null ? chunk.count : view.count - view.counts.queued - view.counts.running;
    this.#seen.set(seq, { view, ended, moves: ended !== before?.ended });
  }
}
