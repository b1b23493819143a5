/**
 * Watches the groups of a batch that are open in its run: which of them has ended, and how much of the others is left.
 * By that the batch is fed: a line that takes long keeps its group open, but not the lines behind it from starting.
 */
import { BATCH_CHUNKS_OPEN, BATCH_WAIT_MS } from "../../src/limits.ts";
import type { RunCaller } from "../again.ts";
import type { GroupView } from "../run/rpc.ts";
import type { Progress } from "./progress.ts";
import type { Chunk } from "./store.ts";

/** Most groups of one batch that are open at once: a run has room for 256, and other batches. */
const GROUPS_OPEN_MAX = 32;

/** How often a group is looked at whose slots end, ms. One that stands still is looked at every `BATCH_WAIT_MS`. */
const LOOK_MS = 200;

type Look = { view: GroupView | null; ended: number; moves: boolean };

export class Watch {
  readonly #run: RunCaller;
  readonly #progress: Progress;
  /** What was seen last of each group, by its number in the run. */
  readonly #looks = new Map<number, Look>();
  /** Looks under way, one for each group at most. */
  readonly #calls = new Map<number, Promise<void>>();

  constructor(run: RunCaller, progress: Progress) {
    this.#run = run;
    this.#progress = progress;
  }

  /** Whether another group may be opened: so many are open, or so little of them is left. */
  hasRoom(chunks: readonly Chunk[]): boolean {
    if (chunks.length >= GROUPS_OPEN_MAX) return false;
    let left = 0;
    for (const { seq, count } of chunks) left += 1 - (this.#looks.get(seq)?.ended ?? 0) / count;
    return left <= BATCH_CHUNKS_OPEN - 1;
  }

  /** A group that has ended, or null: then more is known of one than was before. */
  async next(chunks: readonly Chunk[]): Promise<Chunk | null> {
    const known = this.#ended(chunks);
    if (known !== null) return known;
    for (const chunk of chunks) {
      if (!this.#calls.has(chunk.seq)) this.#calls.set(chunk.seq, this.#look(chunk));
    }
    await Promise.race(this.#calls.values());
    return this.#ended(chunks);
  }

  /** The group is done with. */
  forget({ seq }: Chunk): void {
    this.#looks.delete(seq);
    this.#calls.delete(seq);
  }

  #ended(chunks: readonly Chunk[]): Chunk | null {
    const isOver = (look: Look | undefined) => look !== undefined && look.view?.status !== "running";
    return chunks.find(({ seq }) => isOver(this.#looks.get(seq))) ?? null;
  }

  async #look(chunk: Chunk): Promise<void> {
    const { seq } = chunk;
    const before = this.#looks.get(seq);
    const waitMs = before?.moves === false ? BATCH_WAIT_MS : LOOK_MS;
    const view = await this.#run.untilAnswered<GroupView | null>((stub) => stub.waitGroup(seq, waitMs));
    this.#calls.delete(seq);
    if (view !== null) this.#progress.told(chunk, view);
    const ended = view === null ? chunk.count : view.count - view.counts.queued - view.counts.running;
    this.#looks.set(seq, { view, ended, moves: ended !== before?.ended });
  }
}
