/** A Map of the newest entries: see `RenewedMap` for how it is kept, as an entry goes with almost each that comes. */
import { RenewedMap } from "./map.ts";

export class BoundedMap<K, V> extends RenewedMap<K, V> {
  readonly #most: number;

  /** @param most Entries that it keeps; at least one. */
  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** Sets an entry as the newest one, also if it was there. The oldest one goes if there are too many. */
  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    for (const oldest of this.keys()) {
      if (this.size <= this.#most) break;
      this.delete(oldest);
    }
    return this;
  }
}
