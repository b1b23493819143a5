/** The batch object of the API: every key is always present, null if it has no value. */
import { usdOf } from "../run/money/money.ts";
import { BATCH_TIER } from "../call.ts";
import type { LineUrl } from "./endpoints.ts";
import type { Batch, BatchCounts, BatchStatus } from "./lifecycle.ts";
import type { LineError } from "./line-error.ts";
import { refusal, type ApiRefusal } from "./refusal.ts";
import type { BatchUsage } from "./usage.ts";

export type BatchDocument = {
  id: string;
  object: "batch";
  endpoint: LineUrl;
  model: string | null;
  errors: { object: "list"; data: readonly LineError[] } | null;
  input_file_id: string;
  completion_window: "24h";
  status: BatchStatus;
  output_file_id: string | null;
  error_file_id: string | null;
  created_at: number;
  in_progress_at: number | null;
  expires_at: number;
  finalizing_at: number | null;
  completed_at: number | null;
  failed_at: number | null;
  expired_at: number | null;
  cancelling_at: number | null;
  cancelled_at: number | null;
  request_counts: BatchCounts;
  usage: BatchUsage | null;
  metadata: Record<string, string> | null;
  /** Only of a batch that goes through its provider's batches; the object of any other has OpenAI's fields only. */
  service_tier?: typeof BATCH_TIER;
  /** Lines that the provider's batches have answered, among those written so far, and what that saved, USD. */
  provider_batch?: { completed: number; saved_usd: number };
};

/** The document of a batch. */
export function batchDocument(batch: Batch): BatchDocument {
  const { times, request, errors, provider } = batch;
  return {
    id: batch.id,
    object: "batch",
    endpoint: request.url,
    model: batch.model,
    errors: errors.length === 0 ? null : { object: "list", data: errors },
    input_file_id: request.inputFileId,
    completion_window: "24h",
    status: batch.status,
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: batch.createdAtS,
    in_progress_at: times.in_progress,
    expires_at: batch.expiresAtS,
    finalizing_at: times.finalizing,
    completed_at: times.completed,
    failed_at: times.failed,
    expired_at: times.expired,
    cancelling_at: times.cancelling,
    cancelled_at: times.cancelled,
    request_counts: batch.counts,
    usage: batch.usage,
    metadata: request.metadata,
    ...(provider === undefined ? {} : { service_tier: BATCH_TIER, provider_batch: shown(provider) }),
  };
}

function shown({ completed, savedNanoUsd }: NonNullable<Batch["provider"]>) {
  return { completed, saved_usd: usdOf(savedNanoUsd) };
}

/** The batch does not exist, or belongs to another run. */
export function noBatch(id: string): ApiRefusal {
  return refusal({ message: `No batch found with id '${id}'.`, param: null, code: null }, 404);
}
