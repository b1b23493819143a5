/** A batch as Anthropic's Message Batches API shows it. */
import { MESSAGE_BATCH_RESULTS_S } from "../../limits.ts";
import { isFinal, type Batch } from "../lifecycle.ts";
import { MESSAGES_URL } from "../endpoints.ts";

export type MessageBatchDocument = {
  id: string;
  type: "message_batch";
  processing_status: "in_progress" | "canceling" | "ended";
  request_counts: { processing: number; succeeded: number; errored: number; canceled: number; expired: number };
  created_at: string;
  expires_at: string;
  ended_at: string | null;
  cancel_initiated_at: string | null;
  archived_at: string | null;
  results_url: string | null;
};

/** Whether a batch was created through this API. */
export function isMessageBatch({ request }: Batch): boolean {
  return request.url === MESSAGES_URL;
}

/** The document of a batch. `origin`: of the address under which its client reaches the gateway. */
export function messageBatchDocument(
  batch: Batch,
  { origin, nowS }: { origin: string; nowS: number },
): MessageBatchDocument {
  const { id, times, createdAtS } = batch;
  const endedS = isFinal(batch) ? (times.completed ?? times.expired ?? times.cancelled) : null;
  const archivesS = createdAtS + MESSAGE_BATCH_RESULTS_S;
  const isArchived = endedS !== null && nowS >= archivesS;
  return {
    id,
    type: "message_batch",
    processing_status: endedS !== null ? "ended" : batch.status === "cancelling" ? "canceling" : "in_progress",
    request_counts: countsOf(batch, endedS !== null),
    created_at: timeOf(createdAtS),
    expires_at: timeOf(batch.expiresAtS),
    ended_at: endedS === null ? null : timeOf(endedS),
    cancel_initiated_at: times.cancelling === null ? null : timeOf(times.cancelling),
    archived_at: isArchived ? timeOf(archivesS) : null,
    results_url: endedS === null || isArchived ? null : `${origin}/v1/messages/batches/${id}/results`,
  };
}

/** All requests are `processing` until the whole batch has ended: so Anthropic documents it. */
function countsOf({ counts, notRun }: Batch, hasEnded: boolean): MessageBatchDocument["request_counts"] {
  if (!hasEnded) return { processing: counts.total, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  return {
    processing: 0,
    succeeded: counts.completed,
    errored: counts.failed,
    canceled: notRun?.cancelled ?? 0,
    expired: notRun?.expired ?? 0,
  };
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
