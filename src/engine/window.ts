/**
 * Grouping of single calls: those that arrive within `windowMs` of the first form a parallel group. The window is opened
 * by its first call and does not slide. Nobody waits for it: a call is dispatched at once and only labelled afterwards,
 * and a group is announced when its second member arrives, so a lone call never belongs to one.
 */

/** A group of single calls; `id` is null until its second member arrives. */
export type WindowGroup = { id: string | null; openedAtMs: number; members: number };

export class CallWindow {
  #current: WindowGroup | null = null;
  readonly #windowMs: number;
  readonly #newGroupId: (nowMs: number) => string;

  constructor(windowMs: number, newGroupId: (nowMs: number) => string) {
    this.#windowMs = windowMs;
    this.#newGroupId = newGroupId;
  }

  /** Adds a call that arrives now. `announced` is true when this call made the group one. */
  join(nowMs: number): { group: WindowGroup; announced: boolean } {
    const open = this.#current;
    if (open === null || nowMs >= open.openedAtMs + this.#windowMs) {
      this.#current = { id: null, openedAtMs: nowMs, members: 1 };
      return { group: this.#current, announced: false };
    }
    open.members += 1;
    if (open.id !== null) return { group: open, announced: false };
    open.id = this.#newGroupId(open.openedAtMs);
    return { group: open, announced: true };
  }

  /** Closes the window: the next call opens a new one. */
  flush(): void {
    this.#current = null;
  }
}

/** A group's public id, `pg-<epoch ms>-<6 base36>`; `random` is uniform in [0, 1). */
export function groupIdOf(nowMs: number, random: number): string {
  const suffix = Math.floor(random * 36 ** 6)
    .toString(36)
    .padStart(6, "0");
  return `pg-${String(nowMs).padStart(13, "0")}-${suffix}`;
}
