/** The methods of a batch object: one OpenAI batch of a run. */
import type { BatchRequest } from "../../batch/create.ts";
import type { BatchDocument } from "../../batch/document.ts";
import type { Checked } from "../../batch/refusal.ts";

/** What a batch is created with. */
export type BatchOpening = { id: string; runId: string; request: BatchRequest; requestHash: string };

export interface BatchApi extends Rpc.DurableObjectBranded {
  /** Creates the batch. The same request finds it (`replayed`); null for another request under the same id. */
  create(opening: BatchOpening): { document: BatchDocument; replayed: boolean } | null;

  /** The batch as it is now; null if this run has no such batch. */
  document(runId: string): Promise<BatchDocument | null>;

  /** More of its groups in the run has ended, or all of one: it looks at them. */
  groupsMoved(runId: string): void;

  /** Stops the batch; null if this run has no such batch. */
  cancel(runId: string): Checked<BatchDocument> | null;

  /** Deletes everything of the batch, as its run is deleted. */
  destroy(): Promise<void>;
}
