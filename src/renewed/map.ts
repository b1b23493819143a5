/**
 * A Map whose entries come and go all the time, such as the attempts in flight.
 *
 * V8 replaces the table of a Map or Set that has seen enough deletions or has grown, and a replaced table goes on referring
 * to its entries and to the next table. Once one of these tables is in the old generation, V8's frequent collections of young
 * objects treat what it refers to as live, and so the next table, and the one after that: everything that the Map ever had
 * stays in memory until the next full collection, and brings it about. So this one begins a new Map from time to time: its
 * tables follow none that is old.
 */

/**
 * Removed entries, beyond the number of present ones, after which the next entry begins a new Map. So many may stay in memory
 * after a pause; copying the present ones then costs the widest run a third of an insertion per entry.
 */
export const REMOVED_MAX = 1_024;

export class RenewedMap<K, V> implements ReadonlyMap<K, V> {
  #map: Map<K, V>;
  #removed = 0;

  constructor(entries: Iterable<readonly [K, V]> = []) {
    this.#map = new Map(entries);
  }

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  /** Sets an entry. A loop over the map that is under way may leave it out. */
  set(key: K, value: V): this {
    if (this.#removed > this.#map.size + REMOVED_MAX) {
      this.#map = new Map(this.#map);
      this.#removed = 0;
    }
    this.#map.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    const isRemoved = this.#map.delete(key);
    if (isRemoved) this.#removed += 1;
    return isRemoved;
  }

  clear(): void {
    if (this.#map.size === 0) return;
    this.#map = new Map();
    this.#removed = 0;
  }

  keys(): MapIterator<K> {
    return this.#map.keys();
  }

  values(): MapIterator<V> {
    return this.#map.values();
  }

  entries(): MapIterator<[K, V]> {
    return this.#map.entries();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#map[Symbol.iterator]();
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.#map) visit(value, key, this);
  }
}
