/**
 * Calls that combine the answers of a group. The run opens a group of their own once for each step of a group's `aggregate`,
 * no matter how many clients read the answer. Like any other group, it has reservations, permits, a log and a recovery.
 */

/** A call that combines answers. */
export type CombiningCall = { prompt: string; schema?: Record<string, unknown> };

/** The settings of such calls; null = the run's default model, and no cap. */
export type CombiningSettings = { model: string | null; maxTokens: number | null };

/** What the calls of a step ended as. */
export type StepEnd = {
  /** Its group; null if none was opened. */
  groupId: string | null;
  /** In the order of the calls; null for one that failed. */
  texts: (string | null)[];
  /** The first failure, as the wire names it. */
  error: { code: string; message: string } | null;
  spent: Spent;
};

export type Spent = { promptTokens: number; completionTokens: number; costNanoUsd: number };

/** Makes the calls of a step, or finds what they were answered. `step`: its name among those of the group. */
export type MakeCalls = (
  step: string,
  calls: readonly CombiningCall[],
  settings: CombiningSettings,
) => Promise<StepEnd>;

/** All calls of an aggregation. */
export class CombiningCalls {
  readonly #make: MakeCalls;
  readonly groups: string[] = [];
  readonly spent: Spent = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  #error: StepEnd["error"] = null;

  constructor(make: MakeCalls) {
    this.#make = make;
  }

  /** The first failure of a call; null = none failed so far. */
  get error(): StepEnd["error"] {
    return this.#error;
  }

  /** Makes the calls of a step; null for each that failed. */
  async make(
    step: string,
    calls: readonly CombiningCall[],
    settings: CombiningSettings,
  ): Promise<readonly (string | null)[]> {
    const { groupId, texts, error, spent } = await this.#make(step, calls, settings);
    if (groupId !== null) this.groups.push(groupId);
    this.#error ??= error;
    this.spent.promptTokens += spent.promptTokens;
    this.spent.completionTokens += spent.completionTokens;
    this.spent.costNanoUsd += spent.costNanoUsd;
    return texts;
  }
}
