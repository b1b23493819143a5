/** One slot's outcome on the wire: its result in the style that the client requested, its error, its measures. */
import type { SlotView } from "../run-api/groups.ts";
import type { ErrorStyle } from "../contract/fields.ts";
import { isFinalState } from "../engine/slot.ts";
import { toWire, type WireError } from "../errors.ts";
import { spentOf, usageOf } from "./usage.ts";

/** The error of a slot that ended without completing, as in `errors[i]`; null for any other. */
export function slotError(slot: SlotView): WireError | null {
  if (slot.state === "completed" || !isFinalState(slot.state)) return null;
  const reason = slot.reason ?? { reason: "internal", message: "the slot ended without a reason" };
  return toWire(reason, spentOf(slot)).error;
}

/** The value of `results[i]`, in the client's error style. `errors[i]` is authoritative. */
export function slotResult(slot: SlotView, error: WireError | null, style: ErrorStyle): unknown {
  if (!isFinalState(slot.state)) return null;
  if (style === "settled") {
    return error === null
      ? { status: "fulfilled", value: slot.text ?? "", index: slot.index }
      : { status: "rejected", reason: error, index: slot.index };
  }
  return error === null ? (slot.text ?? "") : errorText(error.message, style);
}

function errorText(message: string, style: Exclude<ErrorStyle, "settled">): string | null {
  switch (style) {
    case "rlm":
      return `Error: ${message}`;
    case "dspy":
      return `[ERROR] ${message}`;
    case "verifiers":
      return `Error in sub-LLM call: ${message}`;
    case "null":
      return null;
    case "bracket":
    case "throw":
      return `[error] ${message}`;
  }
}

/** A slot's line in `items`. */
export function slotItem(slot: SlotView) {
  return {
    index: slot.index,
    id: slot.id,
    status: slot.state,
    model: slot.model,
    usage: slot.attempts === 0 ? null : usageOf(slot),
    latency_ms: slot.attempts === 0 ? null : slot.latencyMs,
    queued_ms: slot.attempts === 0 ? null : slot.queuedMs,
    attempts: slot.attempts,
    finish_reason: slot.finishReason,
    capped_by: slot.cappedBy,
    upstream: slot.upstream,
    estimated: slot.estimated,
  };
}
