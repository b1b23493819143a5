/**
 * Shards in the rows of stored calls. The end of such a call changes two rows, its own and its shard's; so its own takes what the shard's would
 * have been, as long as few have done so since the rows of shards were written: an object that wakes reads the rows of all these calls. The
 * next turn that writes a row of a shard writes all that are carried: it may say of their calls that nobody need read them. It is written
 * once what it says could cover the calls that it had to leave out before, because requests for them might have been repeated.
 */
import type { Group, GroupHeader } from "../../../src/run/group/group.ts";
import { CARRIED_LEASES_MAX, CARRIED_SHARDS_MAX, OPENINGS_RECALLED_MS } from "../../../src/limits.ts";
import type { ShardRecord } from "./records.ts";

/** What a turn writes, as far as it decides on this. */
type Written = { shards: readonly WrittenShard[]; groups: readonly WrittenGroup[] };
type WrittenShard = { readonly id: number; readonly leases: { readonly size: number } };
type WrittenGroup = Pick<Group, "done"> & { readonly header: Pick<GroupHeader, "seq" | "single"> };

export class CarriedShards {
  readonly #ids = new Set<number>();
  #count = 0;
  /** When a row of a shard was written that says which calls a waking object need not read; null = none says so: it reads all. */
  #recordMs: number | null;

  /**
   * @param ids The shards that calls carry which ended after the rows of shards were written, once for each call.
   * @param recordMs When a row of a shard was written that says which calls need not be read, or a time before; null = none says so.
   */
  constructor(ids: readonly number[], recordMs: number | null) {
    for (const id of ids) this.carried(id);
    this.#recordMs = recordMs;
  }

  /** The number of the stored call whose end may carry the one shard that a turn writes; null = shards are written to their rows. */
  carrierOf({ shards, groups }: Written, nowMs: number): number | null {
    const [shard, ...otherShards] = shards;
    const [group, ...otherGroups] = groups;
    if (shard === undefined || group === undefined || otherShards.length + otherGroups.length > 0) return null;
    const isEnd = group.header.single !== null && group.done;
    const isNew = this.#recordMs !== null && nowMs < this.#recordMs + OPENINGS_RECALLED_MS;
    const hasRoom = this.#count < CARRIED_SHARDS_MAX && shard.leases.size <= CARRIED_LEASES_MAX;
    return isEnd && isNew && hasRoom ? group.header.seq : null;
  }

  /** The end of a call has carried a shard. */
  carried(id: number): void {
    this.#ids.add(id);
    this.#count += 1;
  }

  /** The shards that a turn writes beside those that it must, if it writes rows of shards: after it, none is carried. */
  takeOthers(written: readonly WrittenShard[], nowMs: number): number[] {
    if (written.length === 0) return [];
    const others = [...this.#ids].filter((id) => written.every((shard) => shard.id !== id));
    this.#ids.clear();
    this.#count = 0;
    this.#recordMs = nowMs;
    return others;
  }
}

/**
 * Shards as they were written last. Each has all tails: one that is carried has the events since the row, or the carried one, before it.
 * What is settled is known from rows alone: the carried ones are found by it. `carried`: the shards of those that are newer than their rows.
 * `recordMs`: when the last attempt had ended in a row that says what is settled; null = none says so.
 */
export function newestShards(
  rows: readonly ShardRecord[],
  copies: readonly ShardRecord[],
): { shards: ShardRecord[]; carried: number[]; recordMs: number | null } {
  const newest = new Map(rows.map((row) => [row.id, row]));
  const carried: number[] = [];
  for (const { id, shard, tail } of copies.toSorted((a, b) => upToOf(a) - upToOf(b))) {
    const before = newest.get(id);
    // An end has events of its own, so that whatever was written later has a higher number.
    if (before !== undefined && upToOf({ shard }) <= upToOf(before)) continue;
    carried.push(id);
    const { settled } = before?.shard ?? {};
    const merged = settled === undefined ? shard : { ...shard, settled };
    newest.set(id, { id, shard: merged, tail: [...(before?.tail ?? []), ...tail] });
  }
  const records = rows.filter(({ shard }) => shard.settled !== undefined);
  const recordMs = records.length === 0 ? null : Math.max(...records.map(({ shard }) => shard.totals.lastCallMs ?? 0));
  return { shards: [...newest.values()].toSorted((a, b) => a.id - b.id), carried, recordMs };
}

function upToOf({ shard: { upTo = 0 } }: Pick<ShardRecord, "shard">): number {
  return upTo;
}
