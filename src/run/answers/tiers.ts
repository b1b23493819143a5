/** Tiers of the calls of a group: which may start, and what their failures mean. */
import { TIER_FAILURES_LISTED } from "../../limits.ts";

/** 0 = `P0`, the most important. */
export type Tier = 0 | 1 | 2;

/** The tiers on the wire, by their numbers. */
export const TIER_NAMES = ["P0", "P1", "P2"] as const;

/** The tier of a call that names none. */
export const TIER_DEFAULT: Tier = 2;

/** `strict`: a tier starts when all calls of those before it have ended. `priority`: it only comes later in the queue. */
export type TierMode = "strict" | "priority";

/** Failed slots by tier: the first of them by index, and how many in all. */
export type TierFailures = { indexes: readonly (readonly number[])[]; counts: readonly number[] };

const UNKNOWN = 255;

export class Tiers {
  readonly #isStrict: boolean;
  #tiers: Uint8Array;
  /** Slots that have not ended, by tier. */
  readonly #left = [0, 0, 0];
  readonly #failed: number[][] = [[], [], []];
  readonly #failedCounts = [0, 0, 0];
  /** The last tier whose slots were released. */
  #released = -1;

  constructor(mode: TierMode, count: number) {
    this.#isStrict = mode === "strict";
    this.#tiers = new Uint8Array(count).fill(UNKNOWN);
  }

  /** Makes room for the slots of a changed graph; those that there are keep their tiers. */
  grow(count: number): void {
    if (count <= this.#tiers.length) return;
    const larger = new Uint8Array(count).fill(UNKNOWN);
    larger.set(this.#tiers);
    this.#tiers = larger;
  }

  /** Sets the tier of a slot that has not ended; only the first time counts. */
  set(index: number, tier: Tier): void {
    if (this.#tiers[index] !== UNKNOWN) return;
    this.#tiers[index] = tier;
    this.#left[tier] = (this.#left[tier] ?? 0) + 1;
  }

  /** Sets the tiers of ranges of slots. */
  setAll(ranges: readonly { first: number; slots: number; tier: Tier }[]): void {
    for (const { first, slots, tier } of ranges)
      for (let index = first; index < first + slots; index++) this.set(index, tier);
  }

  /** A slot has ended. */
  ended(index: number, hasFailed: boolean): void {
    const tier = this.#tiers[index] ?? UNKNOWN;
    if (tier === UNKNOWN) return;
    this.#left[tier] = (this.#left[tier] ?? 0) - 1;
    if (!hasFailed) return;
    this.#failedCounts[tier] = (this.#failedCounts[tier] ?? 0) + 1;
    const failed = this.#failed[tier] ?? [];
    if (failed.length < TIER_FAILURES_LISTED) failed.push(index);
  }

  /** The tier of a slot; undefined if it is not known. */
  tierOf(index: number): Tier | undefined {
    const tier = this.#tiers[index];
    return tier === 0 || tier === 1 || tier === 2 ? tier : undefined;
  }

  /** Whether the slot may not start yet. */
  isHeld(index: number): boolean {
    return this.#isStrict && (this.#tiers[index] ?? UNKNOWN) > this.#released;
  }

  /** How many slots may not start yet. */
  get heldSlots(): number {
    if (!this.#isStrict) return 0;
    return this.#left.reduce((held, left, tier) => (tier > this.#released ? held + left : held), 0);
  }

  /** Whether slots are queued by `takeReleased` only. */
  get isStrict(): boolean {
    return this.#isStrict;
  }

  /** The slots that may start since the last call, because all of the tiers before theirs have ended. */
  takeReleased(): number[] {
    if (!this.#isStrict) return [];
    const first = this.#left.findIndex((left) => left > 0);
    const open = first === -1 ? TIER_NAMES.length - 1 : first;
    if (open <= this.#released) return [];
    const before = this.#released;
    this.#released = open;
    const released: number[] = [];
    for (const [index, tier] of this.#tiers.entries()) if (tier > before && tier <= open) released.push(index);
    return released;
  }

  get failures(): TierFailures {
    return { indexes: this.#failed, counts: this.#failedCounts };
  }
}

/** Failures with more of them. */
export function withFailures(
  { indexes, counts }: TierFailures,
  more: readonly { index: number; tier: Tier }[],
): TierFailures {
  if (more.length === 0) return { indexes, counts };
  const of = (tier: number): number[] => more.flatMap((each) => (each.tier === tier ? [each.index] : []));
  return {
    indexes: TIER_NAMES.map((_, tier) => [...(indexes[tier] ?? []), ...of(tier)].slice(0, TIER_FAILURES_LISTED)),
    counts: TIER_NAMES.map((_, tier) => (counts[tier] ?? 0) + of(tier).length),
  };
}
