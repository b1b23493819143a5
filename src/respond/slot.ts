/** One slot's outcome on the wire: its result in the style the client asked for, its error, its measures. */
import type { SlotView } from "../../durable-objects/run/rpc.ts";
import type { ErrorStyle } from "../contract/fields.ts";
import { hasEnded } from "../engine/slot.ts";
import { toWire, type WireError } from "../errors.ts";
import { usageOf } from "./usage.ts";

/** The error of a slot that ended without completing, as `errors[i]` holds it; null for any other. */
export function slotError(slot: SlotView): (WireError & { attempts: number }) | null {
  if (slot.state === "completed" || !hasEnded(slot.state)) return null;
  const reason = slot.reason ?? { reason: "internal", message: "the slot ended without a reason" };
  return { ...toWire(reason).error, attempts: slot.attempts };
}

/** What stands in `results[i]`. `errors[i]` is the truth; this is how the client's language likes to see it. */
export function slotResult(slot: SlotView, error: WireError | null, style: ErrorStyle): unknown {
  if (!hasEnded(slot.state)) return null;
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
    estimated: slot.estimated,
  };
}
