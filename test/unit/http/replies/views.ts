/** Groups and slots as the run object shows them to what answers. */
import type { GroupView, SlotView } from "../../../../src/objects/methods/groups.ts";
import type { Reason } from "../../../../src/errors.ts";

export const GROUP_ID = "pg-1763712000000-k3j9x2";

/** A slot that completed at its first attempt. */
export function slotView(fields: Partial<SlotView> = {}): SlotView {
  return {
    index: 0,
    id: null,
    state: "completed",
    attempts: 1,
    latencyMs: 812,
    queuedMs: 3,
    promptTokens: 40,
    completionTokens: 7,
    costNanoUsd: 54_000,
    estimated: false,
    model: "gpt-x-2026",
    finishReason: "stop",
    text: "ok",
    reason: null,
    ...fields,
  };
}

/** A slot that ended without completing. */
export function failedView(reason: Reason, fields: Partial<SlotView> = {}): SlotView {
  return slotView({ state: "failed", text: null, model: null, finishReason: null, reason, ...fields });
}

export function groupView(count: number, fields: Partial<GroupView> = {}): GroupView {
  const counts = { queued: 0, running: 0, completed: count, failed: 0, skipped: 0, cancelled: 0 };
  return {
    id: GROUP_ID,
    status: "completed",
    count,
    counts,
    openedAtMs: 1_000,
    endedAtMs: 1_400,
    errorStyle: "bracket",
    parallelGroupId: GROUP_ID,
    effectiveParallel: 8,
    remainingNanoUsd: null,
    metrics: { wall_ms: 400, sequential_ms: 500, speedup: 1.25, peak_parallel: 2, success_rate: 1 },
    usage: { promptTokens: 40, completionTokens: 7, costNanoUsd: 54_000 },
    ...fields,
  };
}

/** Reads slots as the run object serves them: some at a time. */
export function readerOf(slots: readonly SlotView[], each = 2): { slotsFrom: (index: number) => Promise<SlotView[]> } {
  return { slotsFrom: (index) => Promise.resolve(slots.slice(index, index + each)) };
}
