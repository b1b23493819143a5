/**
 * The slots of a group that go through batches of their provider: half the price, for calls that have hours. They count as queued,
 * but are not in the engine's queue: the object that feeds the provider claims them page by page, and each page becomes one batch
 * there. A claimed slot has its reservation, and stays queued until the provider has answered it or given it back.
 */
import type { AttemptInFlight } from "../leases/shard.ts";
import { indexOf } from "../queue/slot.ts";

export class ProviderSlots {
  /** From then on, unclaimed slots are sent live; the object that feeds the provider takes the others back. */
  readonly liveAtMs: number;
  readonly #unclaimed = new Set<number>();
  /** Leases by the slot's index, by page. A page stays known when all of it has ended: a repeated claim finds it. */
  readonly #pages = new Map<number, Map<number, AttemptInFlight>>();
  readonly #claimed = new Map<number, AttemptInFlight>();

  constructor(liveAtMs: number) {
    this.liveAtMs = liveAtMs;
  }

  /** Slots that wait here, claimed or not. */
  get size(): number {
    return this.#unclaimed.size + this.#claimed.size;
  }

  /** Whether slots are at the provider. */
  get hasClaimed(): boolean {
    return this.#claimed.size > 0;
  }

  /** Indexes of slots that wait for a claim, in order. */
  get unclaimed(): ReadonlySet<number> {
    return this.#unclaimed;
  }

  /** Whether a slot is in a page. */
  isClaimed(index: number): boolean {
    return this.#claimed.has(index);
  }

  hold(index: number): void {
    this.#unclaimed.add(index);
  }

  /** A slot no longer goes to the provider. */
  drop(index: number): void {
    this.#unclaimed.delete(index);
  }

  /** Takes all slots that wait for a claim. */
  takeUnclaimed(): number[] {
    const indexes = [...this.#unclaimed];
    this.#unclaimed.clear();
    return indexes;
  }

  /** Makes a page of claimed slots; also when the group is rebuilt, with those that have not ended. */
  addPage(page: number, leases: Iterable<AttemptInFlight>): void {
    const byIndex = new Map<number, AttemptInFlight>();
    for (const lease of leases) {
      const index = indexOf(lease.slotId ?? 0);
      byIndex.set(index, lease);
      this.#claimed.set(index, lease);
      this.#unclaimed.delete(index);
    }
    this.#pages.set(page, byIndex);
  }

  /** The leases of a page that have not ended; undefined if there is no such page. */
  page(page: number): AttemptInFlight[] | undefined {
    const leases = this.#pages.get(page);
    return leases === undefined ? undefined : [...leases.values()];
  }

  /** Takes the lease of a slot of a page; undefined if it has ended, or was never there. */
  take(page: number, index: number): AttemptInFlight | undefined {
    const leases = this.#pages.get(page);
    const lease = leases?.get(index);
    if (lease === undefined) return undefined;
    leases?.delete(index);
    this.#claimed.delete(index);
    return lease;
  }

  /** What a slot waits for: the upstream of its batch; null = it has none yet. */
  upstreamOf(index: number): string | null {
    return this.#claimed.get(index)?.target.upstream ?? null;
  }

  /** All slots that wait here, by index. */
  *indexes(): Generator<number> {
    yield* this.#claimed.keys();
    yield* this.#unclaimed;
  }
}
