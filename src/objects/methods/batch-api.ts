/** The methods of a batch object: one batch of a run, of OpenAI's API or of Anthropic's. */
import type { BatchRequest } from "../../batch/create.ts";
import type { Batch } from "../../batch/lifecycle.ts";
import type { Checked } from "../../batch/refusal.ts";

/** What a batch is created with. */
export type BatchOpening = { id: string; runId: string; request: BatchRequest; requestHash: string };

export interface BatchApi extends Rpc.DurableObjectBranded {
  /** Creates the batch. The same request finds it (`replayed`); null for another request under the same id. */
  open(opening: BatchOpening): { batch: Batch; replayed: boolean } | null;

  /** The batch as it is now, with the lines that have ended in its open groups; null if this run has no such batch. */
  read(runId: string): Promise<Batch | null>;

  /** More of its groups in the run has ended, or all of one: it looks at them. */
  groupsMoved(runId: string): void;

  /** Stops the batch; null if this run has no such batch. */
  stop(runId: string): Checked<Batch> | null;

  /** Deletes everything of the batch, as its run or its client deletes it. */
  destroy(): Promise<void>;
}
