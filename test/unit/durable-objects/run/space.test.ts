/** One bound for a root run with its descendants: the account of the root, in random histories. */
import { describe, expect, it } from "vitest";
import { TreeAccount } from "../../../../durable-objects/run/store/space.ts";
import { RUN_FLOOR_BYTES, RUN_SPACE_STEP_BYTES } from "../../../../src/limits.ts";
import { seeded } from "../../../support/engine.ts";

const BOUND = 20 * 1024 * 1024;
const MB = 1024 * 1024;

/** A tree in which each run stores until it is refused, as the objects do it. */
class Tree {
  readonly account = new TreeAccount();
  readonly stored = new Map<string, number>();
  rootBytes = 0;
  children = 0;

  get free(): number {
    return BOUND - this.rootBytes - this.children * RUN_FLOOR_BYTES - this.account.sum;
  }

  get storedBytes(): number {
    let sum = this.rootBytes;
    for (const bytes of this.stored.values()) sum += bytes;
    return sum;
  }

  open(id: string): void {
    if (this.free < RUN_FLOOR_BYTES) return;
    this.children += 1;
    this.stored.set(id, 0);
  }

  store(id: string, bytes: number): boolean {
    const before = this.stored.get(id);
    if (before === undefined) return false;
    const needed = before + bytes - RUN_FLOOR_BYTES;
    const mayStore = RUN_FLOOR_BYTES + (needed <= 0 ? 0 : this.account.allow(id, needed, this.free));
    if (before + bytes > mayStore) return false;
    this.stored.set(id, before + bytes);
    return true;
  }

  /** What a batch of a run writes is there when it is reported: to the root, beyond what it is allowed too. */
  write(id: string, bytes: number): void {
    const before = this.stored.get(id);
    if (before === undefined) return;
    const needed = before + bytes - RUN_FLOOR_BYTES;
    if (needed > this.account.of(id)) {
      const allowed = this.account.allow(id, needed, this.free);
      if (allowed < needed) this.account.set(id, needed);
    }
    this.stored.set(id, before + bytes);
  }

  writeAtRoot(bytes: number): void {
    this.rootBytes += bytes;
  }

  storeAtRoot(bytes: number): boolean {
    if (bytes > this.free) return false;
    this.rootBytes += bytes;
    return true;
  }

  remove(id: string): void {
    this.stored.delete(id);
    this.account.set(id, 0);
  }
}

describe("the account of a tree", () => {
  it("lets a tree store no more than the bound, and most of it, in 200 random histories", { tags: ["slow"] }, () => {
    for (let seed = 1; seed <= 200; seed++) {
      const random = seeded(seed);
      const tree = new Tree();
      const upTo = (most: number): number => Math.floor(random() * most);
      for (let step = 0; step < 400; step++) {
        const id = `r${upTo(12)}`;
        const kind = upTo(10);
        if (kind === 0 && !tree.stored.has(id)) tree.open(id);
        else if (kind === 1) tree.storeAtRoot(upTo(MB));
        else if (kind === 2 && upTo(20) === 0) tree.remove(id);
        else tree.store(id, upTo(300_000));
        expect(tree.storedBytes).toBeLessThanOrEqual(BOUND);
      }
      // What one of them may still store is what is free, whoever asks.
      while (tree.storeAtRoot(1_000));
      expect(tree.free).toBeLessThan(1_000);
    }
  });

  it(
    "counts all that batches write, which nobody refuses, and lets no client have more beyond the bound, in 200 random histories",
    { tags: ["slow"] },
    () => {
      for (let seed = 1; seed <= 200; seed++) {
        const random = seeded(seed);
        const tree = new Tree();
        const upTo = (most: number): number => Math.floor(random() * most);
        for (let step = 0; step < 400; step++) {
          const id = `r${upTo(12)}`;
          const kind = upTo(10);
          const before = BOUND - tree.free;
          if (kind === 0 && !tree.stored.has(id)) tree.open(id);
          else if (kind === 1) tree.writeAtRoot(upTo(MB / 2));
          else if (kind === 2) tree.write(id, upTo(MB));
          else if (kind === 3 && upTo(20) === 0) tree.remove(id);
          else {
            if (kind === 4) tree.storeAtRoot(upTo(300_000));
            else tree.store(id, upTo(300_000));
            expect(BOUND - tree.free).toBeLessThanOrEqual(Math.max(before, BOUND));
          }
          expect(tree.storedBytes).toBeLessThanOrEqual(BOUND - tree.free);
        }
      }
    },
  );

  it("allows a step more than is needed, or what is needed where only that is free, and takes nothing back", () => {
    const account = new TreeAccount();
    expect(account.allow("a", 1_000, 100 * MB)).toBe(RUN_SPACE_STEP_BYTES);
    expect(account.allow("a", 10, 100 * MB)).toBe(RUN_SPACE_STEP_BYTES);
    expect(account.allow("b", 1_000, 1_000)).toBe(1_000);
    expect(account.allow("b", 1_001, 0)).toBe(1_000);
    expect(account.sum).toBe(RUN_SPACE_STEP_BYTES + 1_000);
  });

  it("is the same after a restart, and a run that was deleted counts no more", () => {
    const account = new TreeAccount([
      { id: "a", bytes: 5 },
      { id: "b", bytes: 7 },
    ]);
    expect([account.sum, account.of("a"), account.of("c")]).toEqual([12, 5, 0]);
    account.set("a", 0);
    expect([account.sum, account.of("a")]).toEqual([7, 0]);
  });
});
