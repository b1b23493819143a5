/**
 * Watches the groups of a batch that are open in its run: which of them have ended, and how much of the others is left.
 * The batch is fed by what is left: a slow line keeps its group open, but does not keep the next lines from starting. The run
 * notifies the batch when there is something to see.
 */
import { BATCH_CHUNKS_OPEN, BATCH_FRESH_MS, BATCH_GROUPS_OPEN_MAX } from "../../src/limits.ts";
import type { GroupView } from "../../src/objects/methods/groups.ts";
import type { RunCaller } from "../../src/objects/clients/caller.ts";
import type { Progress } from "./progress.ts";
import type { Chunk } from "./store.ts";

/** `view` null = the run does not have the group. */
type Seen = { view: GroupView | null; ended: number };

export class Watch {
  readonly #run: Pick<RunCaller, "callWithRetry">;
  readonly #progress: Progress;
  /** The last state of each group, by its number in the run. */
  readonly #seen = new Map<number, Seen>();
  #lookedAtMs = 0;

  constructor(run: Pick<RunCaller, "callWithRetry">, progress: Progress) {
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
    await this.#look(chunks, nowMs);
    return this.#ended(chunks);
  }

  /** Looks at the groups, unless the last look is fresh. A failure leaves what was known: the next look repeats it. */
  async refresh(chunks: readonly Chunk[], nowMs: number): Promise<void> {
    if (nowMs >= this.#lookedAtMs + BATCH_FRESH_MS) await this.#look(chunks, nowMs).catch(() => undefined);
  }

  async #look(chunks: readonly Chunk[], nowMs: number): Promise<void> {
    this.#lookedAtMs = nowMs;
    await Promise.all(chunks.map((chunk) => this.#read(chunk)));
  }

  /** The lines of the group are written. */
  forget({ seq }: Chunk): void {
    this.#seen.delete(seq);
  }

  #ended(chunks: readonly Chunk[]): Chunk | null {
    const hasEnded = (seen: Seen | undefined) => seen !== undefined && seen.view?.status !== "running";
    return chunks.find(({ seq }) => hasEnded(this.#seen.get(seq))) ?? null;
  }

  async #read(chunk: Chunk): Promise<void> {
    const { seq } = chunk;
    const view = await this.#run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
    if (view !== null) this.#progress.update(chunk, view);
    const ended = view === null ? chunk.count : view.count - view.counts.queued - view.counts.running;
    this.#seen.set(seq, { view, ended });
  }
}
