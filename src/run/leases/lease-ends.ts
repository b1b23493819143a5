/**
 * When leases in flight end by themselves: a heap, because the alarm and the turns ask for the first end while thousands of leases are
 * in flight. All changes of an end go through here. One that moves to a later time, as with each renewal, costs nothing until it is
 * the first: only then is its place put right.
 */

/** Entries of leases that have ended, beyond twice those in flight, after which they are dropped. */
const ENDED_MAX = 256;

type Ending = { expiresAtMs: number };
type Entry<Lease> = { endMs: number; lease: Lease };

export class LeaseEnds<Lease extends Readonly<Ending>> {
  readonly #inFlight: { readonly size: number; has: (lease: Lease) => boolean };
  #heap: Entry<Lease>[] = [];

  constructor(inFlight: { readonly size: number; has: (lease: Lease) => boolean }) {
    this.#inFlight = inFlight;
  }

  /** A lease is in flight. */
  add(lease: Lease): void {
    if (this.#heap.length > 2 * this.#inFlight.size + ENDED_MAX) this.#dropEnded();
    this.#push({ endMs: lease.expiresAtMs, lease });
  }

  /** Moves the end of a lease. */
  set(lease: Lease & Ending, endMs: number): void {
    const isEarlier = endMs < lease.expiresAtMs;
    lease.expiresAtMs = endMs;
    if (isEarlier) this.add(lease);
  }

  /** When the first lease ends; null = none is in flight. */
  firstMs(): number | null {
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined) return null;
      const { endMs, lease } = first;
      const isInFlight = this.#inFlight.has(lease);
      if (isInFlight && lease.expiresAtMs === endMs) return endMs;
      this.#removeFirst();
      // One that ends sooner by now has another entry.
      if (isInFlight && lease.expiresAtMs > endMs) this.#push({ endMs: lease.expiresAtMs, lease });
    }
  }

  #dropEnded(): void {
    const present = new Set<Lease>();
    for (const { lease } of this.#heap) if (this.#inFlight.has(lease)) present.add(lease);
    const ends = Array.from(present, (lease) => ({ endMs: lease.expiresAtMs, lease }));
    // A sorted list is a heap.
    this.#heap = ends.sort((a, b) => a.endMs - b.endMs);
  }

  #push(entry: Entry<Lease>): void {
    const heap = this.#heap;
    let place = heap.length;
    for (;;) {
      const above = (place - 1) >> 1;
      const parent = place === 0 ? undefined : heap[above];
      if (parent === undefined || parent.endMs <= entry.endMs) break;
      heap[place] = parent;
      place = above;
    }
    heap[place] = entry;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      const [a, b] = [heap[left], heap[left + 1]];
      if (a === undefined) break;
      const isRight = b !== undefined && b.endMs < a.endMs;
      const least = isRight ? b : a;
      if (least.endMs >= last.endMs) break;
      heap[place] = least;
      place = isRight ? left + 1 : left;
    }
    heap[place] = last;
  }
}
