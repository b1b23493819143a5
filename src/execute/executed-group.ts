/** A group that this Worker executes, as its answer reads it: from memory where it can, else from the run object. */
import type { GroupView, SlotView } from "../run-api/groups.ts";
import type { GroupReader, GroupSource } from "../run-client/group-reader.ts";
import type { GroupExecutor } from "./group-executor.ts";

export class ExecutedGroup implements GroupSource {
  readonly #reader: GroupReader;
  readonly #executor: GroupExecutor;

  constructor(reader: GroupReader, executor: GroupExecutor) {
    this.#reader = reader;
    this.#executor = executor;
  }

  /** Resolves when the group has ended. */
  async ended(): Promise<GroupView> {
    return (await this.#executor.ended) ?? this.#reader.ended();
  }

  /** The group as it is now; waits up to `waitMs` for its end. */
  look(waitMs = 0): Promise<GroupView> {
    return this.#reader.look(waitMs);
  }

  /** Slots in input order from an index on; of a group that has ended. */
  async slotsFrom(index: number): Promise<SlotView[]> {
    const known = this.#executor.slotsFrom(index);
    return known.length > 0 ? known : this.#reader.slotsFrom(index);
  }

  /** Every slot once, as it ends. */
  slotsAsTheyEnd(): AsyncGenerator<SlotView> {
    return this.#reader.slotsAsTheyEnd();
  }
}
