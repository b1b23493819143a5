/** A Set whose members come and go all the time: see `RenewedMap`. */
import { RenewedMap } from "./map.ts";

export class RenewedSet<T> {
  readonly #members = new RenewedMap<T, true>();

  get size(): number {
    return this.#members.size;
  }

  has(member: T): boolean {
    return this.#members.has(member);
  }

  /** Adds a member. A loop over the set that is under way may leave it out. */
  add(member: T): this {
    this.#members.set(member, true);
    return this;
  }

  delete(member: T): boolean {
    return this.#members.delete(member);
  }

  clear(): void {
    this.#members.clear();
  }

  [Symbol.iterator](): MapIterator<T> {
    return this.#members.keys();
  }
}
