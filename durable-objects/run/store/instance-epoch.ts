/**
 * The number of this instance among those of the run object that found groups open: later instances have higher numbers. It is
 * stored before anybody knows it, and seldom in a row of its own: what wakes the object mostly writes the row of a shard.
 */
import type { RunStore } from "./store.ts";

export class InstanceEpoch {
  readonly #store: RunStore;
  readonly #value: number;
  /** Where it is stored. If only rows of shards have it, each that is written must. */
  #storedIn: "meta" | "shards" | "nothing";

  /** @param inShards The highest epoch that rows of shards have. `isNew`: this instance has found groups open. */
  constructor(store: RunStore, { inShards, isNew }: { inShards: number; isNew: boolean }) {
    const inMeta = store.meta.get("epoch");
    const before = Math.max(inMeta, inShards);
    this.#store = store;
    this.#value = isNew ? before + 1 : before;
    this.#storedIn = isNew ? "nothing" : inMeta === before ? "meta" : "shards";
    // Rows of shards have it only in a run with single calls in rows of their own.
    if (isNew && !store.hasSingles) this.#put();
  }

  /** The number, which is stored from now on. */
  get value(): number {
    if (this.#storedIn === "nothing") this.#put();
    return this.#value;
  }

  /** What rows of shards must have. */
  get ofShards(): { epoch?: number } {
    return this.#storedIn === "meta" ? {} : { epoch: this.#value };
  }

  /** Rows of shards are stored. */
  shardsWritten(): void {
    if (this.#storedIn === "nothing") this.#storedIn = "shards";
  }

  #put(): void {
    this.#store.meta.set("epoch", this.#value);
    this.#storedIn = "meta";
  }
}
