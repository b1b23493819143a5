/**
 * Which groups of a run a restart need not read: nothing changes them any more, and what they add to the statistics is in one sum. It is written
 * with the row of a shard, which a turn writes anyway. So an object wakes by what is open, not by all that the run has ever done.
 */
import type { GroupHeader } from "../../../src/run/group/group.ts";
import type { StoredSettled } from "../../../src/run/leases/shard.ts";
import { OPENINGS_KEPT, OPENINGS_RECALLED_MS, SETTLED_OPEN_MAX } from "../../../src/limits.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";
import { countGroup } from "./counters.ts";
import type { GroupCounts } from "./meta.ts";

type Counted = Pick<GroupHeader, "seq" | "count" | "single" | "graph" | "openedAtMs" | "serves">;

/** `serves`: the number of the group that it serves; null = it serves none. */
type Facts = { counts: GroupCounts; openedAtMs: number; serves: number | null };

const NOTHING: StoredSettled = { before: 1, next: 1, open: [], counts: noCounts() };

export class SettledGroups {
  #before: number;
  /** Groups below `before` that may change. */
  readonly #open: Set<number>;
  readonly #counts: GroupCounts;
  /** The groups that are not in `#counts`, by number: those that were never opened are missing. */
  readonly #facts = new RenewedMap<number, Facts>();

  /** @param stored What a row of a shard has; null = every group was read. */
  constructor(stored: StoredSettled | null) {
    const { before, open, counts } = stored ?? NOTHING;
    this.#before = before;
    this.#open = new Set(open);
    this.#counts = { ...counts };
  }

  /** A group was opened or read, or has changed. */
  note(header: Counted): void {
    const counts = noCounts();
    countGroup(counts, header);
    this.#facts.set(header.seq, { counts, openedAtMs: header.openedAtMs, serves: header.serves?.seq ?? null });
  }

  /**
   * What the present turn stores. `next`: the number of the next group. `isOpen`: whether a group has not ended in a row that is stored, or is being
   * uploaded.
   */
  stored(next: number, isOpen: (seq: number) => boolean, nowMs: number): StoredSettled {
    const mayChange = (seq: number): boolean => isOpen(seq) || this.#isNeeded(seq, { next, isOpen, nowMs });
    for (const seq of this.#open) {
      if (mayChange(seq)) continue;
      this.#open.delete(seq);
      this.#settle(seq);
    }
    for (; this.#before < next; this.#before += 1) {
      if (!mayChange(this.#before)) this.#settle(this.#before);
      else if (this.#open.size < SETTLED_OPEN_MAX && isOpen(this.#before)) this.#open.add(this.#before);
      else break;
    }
    return { before: this.#before, next, open: [...this.#open], counts: { ...this.#counts } };
  }

  /** Whether a group that has ended is still needed: by a request that may be repeated, or by the group that it serves. */
  #isNeeded(seq: number, at: { next: number; isOpen: (seq: number) => boolean; nowMs: number }): boolean {
    const facts = this.#facts.get(seq);
    if (facts === undefined) return false;
    if (facts.serves !== null && at.isOpen(facts.serves)) return true;
    return seq >= at.next - OPENINGS_KEPT && at.nowMs < facts.openedAtMs + OPENINGS_RECALLED_MS;
  }

  #settle(seq: number): void {
    const counts = this.#facts.get(seq)?.counts;
    if (counts === undefined) return;
    this.#counts.slots += counts.slots;
    this.#counts.parallelGroups += counts.parallelGroups;
    this.#counts.parallelSlots += counts.parallelSlots;
    this.#facts.delete(seq);
  }
}

/** The one of several that covers most groups; null if there is none. */
export function newestOf(all: Iterable<StoredSettled | undefined>): StoredSettled | null {
  let newest: StoredSettled | null = null;
  for (const each of all) if (each !== undefined && each.before >= (newest?.before ?? 0)) newest = each;
  return newest;
}

function noCounts(): GroupCounts {
  return { slots: 0, parallelGroups: 0, parallelSlots: 0 };
}
