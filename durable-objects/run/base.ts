/**
 * What the run's counters stood at when they were last shown as zero. The ledger is summed up from the same counters, so
 * they are never set back themselves.
 */
import { z } from "zod";
import { storedShard } from "../../src/engine/shard.ts";
import { sumTotals, zeroTotals, type Totals } from "../../src/engine/totals.ts";
import type { RunCore } from "./core.ts";
import type { GroupCounts } from "./rebuild.ts";
import type { RunStore } from "./store.ts";

/** Counters at one time. */
export type Counted = { totals: Totals; groups: GroupCounts };

const stored = z.object({ totals: z.custom<Totals>(), groups: z.custom<GroupCounts>() });

export class Base {
  readonly #store: RunStore;
  #counted: Record<"stats" | "usage", Counted>;

  constructor(store: RunStore) {
    this.#store = store;
    this.#counted = { stats: read(store, "stats"), usage: read(store, "usage") };
  }

  /** What counters stood at when they were last shown as zero. */
  of(name: "stats" | "usage"): Counted {
    return this.#counted[name];
  }

  /** Counts from now on. Returns the rows to write. */
  reset(name: "stats" | "usage", core: RunCore): () => void {
    const counted = { totals: totalsOf(core), groups: { ...core.groupCounts } };
    this.#counted[name] = counted;
    const shards = name === "stats" ? [...core.state.shards.values()] : [];
    for (const { totals } of shards) totals.peakParallel = 0;
    return () => {
      this.#store.putBase(name, JSON.stringify(counted));
      // A peak cannot be told from a base: it begins anew, in the rows too.
      for (const shard of shards) this.#store.putShard(shard.id, storedShard(shard));
    };
  }
}

/** The run's counters over all executors. */
export function totalsOf({ state }: RunCore): Totals {
  return sumTotals([...state.shards.values()].map((shard) => shard.totals));
}

function read(store: RunStore, name: "stats" | "usage"): Counted {
  const json = store.base(name);
  if (json === null) return { totals: zeroTotals(), groups: { slots: 0, parallelGroups: 0, parallelSlots: 0 } };
  const { totals, groups } = stored.parse(JSON.parse(json));
  return { totals: { ...zeroTotals(), ...totals }, groups };
}
