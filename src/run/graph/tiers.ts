/** Strict tiers of a graph: a tier starts when all tasks of the tiers before it have ended, however they ended. */
import { TIER_DEFAULT, TIER_NAMES, type Tier } from "../answers/tiers.ts";
import type { Faults } from "./faults.ts";
import type { CompiledTask } from "./types.ts";

type Tiered = Pick<CompiledTask, "id" | "dependencies" | "alternativeOf" | "tier" | "removed">;

export function tierOf({ tier }: Pick<CompiledTask, "tier">): Tier {
  return tier ?? TIER_DEFAULT;
}

/**
 * Refuses a task that would wait for a later tier, which waits for it. An alternative belongs to the tier of its task: that
 * task has not ended before it, and what it replaces has.
 */
export function checkTiers(tasks: readonly Tiered[], faults: Faults): void {
  const refuse = (path: string, message: string): void => faults.add({ code: "invalid_tier", path, message });
  tasks.forEach((task, position) => {
    if (task.removed === true) return;
    const own = tierOf(task);
    for (const dependency of task.dependencies) {
      const other = tasks[dependency];
      if (other === undefined || tierOf(other) <= own) continue;
      const [later, mine] = [TIER_NAMES[tierOf(other)], TIER_NAMES[own]];
      const message = `"${task.id}" of ${mine} depends on "${other.id}" of ${later}, which starts after all of ${mine}`;
      refuse(`tasks[${position}].tier`, message);
    }
    const primary = tasks[task.alternativeOf ?? -1];
    if (primary === undefined || tierOf(primary) === own) return;
    refuse(
      `tasks[${position}].tier`,
      `"${task.id}" replaces "${primary.id}"; expected its tier, ${TIER_NAMES[tierOf(primary)]}`,
    );
  });
}

/** Which strict tier is open: tasks of later ones wait. Without strict tiers, all are open. */
export class TierBarrier {
  /** Tasks that have not ended, by tier; null = tiers hold nothing back. */
  readonly #left: number[] | null;
  #open = 0;

  constructor(tasks: readonly CompiledTask[], isStrict: boolean) {
    this.#left = isStrict ? [0, 0, 0] : null;
    if (this.#left === null) return;
    for (const task of tasks) this.#left[tierOf(task)] = (this.#left[tierOf(task)] ?? 0) + 1;
    this.#advance();
  }

  /** Whether a task waits for an earlier tier. */
  holds(task: Pick<CompiledTask, "tier">): boolean {
    return this.#left !== null && tierOf(task) > this.#open;
  }

  /** A task has ended. The tiers that this opens. */
  ended(task: Pick<CompiledTask, "tier">): readonly Tier[] {
    if (this.#left === null) return [];
    this.#left[tierOf(task)] = (this.#left[tierOf(task)] ?? 0) - 1;
    const before = this.#open;
    this.#advance();
    return TIERS.filter((tier) => tier > before && tier <= this.#open);
  }

  #advance(): void {
    while (this.#open < TIER_DEFAULT && this.#left?.[this.#open] === 0) this.#open += 1;
  }
}

const TIERS = [0, 1, 2] as const;
