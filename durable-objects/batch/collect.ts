/** Collecting a group that has ended: each of its slots becomes a line of one of the batch's files. */
import { batchEndpoint } from "../../src/batch/endpoints.ts";
import { batchRequestId, writeLine, type LineOutcome } from "../../src/batch/output.ts";
import { isMessageBatch } from "../../src/batch/messages/document.ts";
import { writeResult } from "../../src/batch/messages/result.ts";
import { addUsage, type LineUsage } from "../../src/batch/usage.ts";
import type { Reason } from "../../src/errors.ts";
import { readJsonAnswer } from "../../src/providers/formats/response/read.ts";
import type { SlotView } from "../../src/objects/methods/groups.ts";
import type { BatchFile, Chunk, Job } from "./store.ts";

const encoder = new TextEncoder();

/** Lines by the file that they are written to. */
export type Lines = Record<BatchFile, string[]>;

export function noLines(): Lines {
  return { output: [], error: [] };
}

/** Adds the lines of slots, and their counts and usage, to the job. */
export function collectSlots(job: Job, chunk: Chunk, slots: readonly SlotView[], lines: Lines): void {
  for (const slot of slots) {
    const index = chunk.firstIndex + slot.index;
    addLine(job, { index, customId: slot.id ?? "" }, outcomeOf(job, index, slot), lines);
    if (slot.state === "completed") job.batch = { ...job.batch, ...sumsWith(job, slot) };
  }
}

/** Adds one line, and its count, to the job. */
export function addLine(
  job: Job,
  { index, customId }: { index: number; customId: string },
  outcome: LineOutcome,
  lines: Lines,
): void {
  const write = isMessageBatch(job.batch) ? writeResult : writeLine;
  const written = write({ id: batchRequestId(job.batch.id, index), customId }, outcome);
  lines[written.file].push(written.text);
  const { batch } = job;
  switch (written.counts) {
    case null:
      return;
    case "completed":
    case "failed":
      job.batch = { ...batch, counts: { ...batch.counts, [written.counts]: batch.counts[written.counts] + 1 } };
      return;
    case "cancelled":
    case "expired": {
      const notRun = batch.notRun ?? { cancelled: 0, expired: 0 };
      job.batch = { ...batch, notRun: { ...notRun, [written.counts]: notRun[written.counts] + 1 } };
    }
  }
}

const NO_REASON: Reason = { reason: "internal", message: "the line ended without a reason" };

function outcomeOf(job: Job, index: number, slot: SlotView): LineOutcome {
  const requestId = `req_${batchRequestId(job.batch.id, index)}`;
  if (slot.state === "completed") return { kind: "completed", statusCode: 200, requestId, body: slot.text ?? "{}" };
  return { kind: "failed", reason: slot.reason ?? NO_REASON, requestId, upstreamBody: slot.text };
}

/** The sums of a batch with one more answer. */
function sumsWith(job: Job, slot: SlotView): Pick<Job["batch"], "usage" | "provider"> {
  const { provider } = job.batch;
  const usage = addUsage(job.batch.usage, usageOf(job, slot));
  const { savedNanoUsd } = slot;
  if (provider === undefined || savedNanoUsd === undefined) return { usage };
  const { completed } = provider;
  return { usage, provider: { completed: completed + 1, savedNanoUsd: provider.savedNanoUsd + savedNanoUsd } };
}

/** The usage that the line's own answer names; the run's figures if it names none. */
function usageOf(job: Job, slot: SlotView): LineUsage {
  const { endpoint } = batchEndpoint(job.batch.request.url);
  const { usage } = readJsonAnswer(endpoint, encoder.encode(slot.text ?? ""));
  const { promptTokens, completionTokens } = slot;
  return usage ?? { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0 };
}
