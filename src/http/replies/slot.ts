/** One slot's outcome on the wire: its result in the style that the client requested, its error, its measures. */
import type { SlotView } from "../../objects/methods/groups.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import { isFinalState } from "../../run/queue/slot.ts";
import { toWire, type Reason, type WireError } from "../../errors.ts";
import { jsonOfAnswer } from "../../text/schema/answer.ts";
import { courseFields } from "./course.ts";
import { partsOfSlot, withParts } from "./parts.ts";
import { spentOf, usageOf } from "./usage.ts";

/** The error of a slot that ended without completing, as in `errors[i]`; null for any other. */
export function slotError(slot: SlotView): WireError | null {
  if (slot.state === "completed" || !isFinalState(slot.state)) return null;
  return toWire(reasonOf(slot), spentOf(slot)).error;
}

/** Why a slot ended without completing; with its last answer if that does not fit the schema. */
export function reasonOf({ reason, text }: SlotView): Reason {
  if (reason === null) return { reason: "internal", message: "the slot ended without a reason" };
  return reason.reason === "schema_violation" && text !== null ? { ...reason, text } : reason;
}

/** The answer of a slot as JSON, if it was checked against a schema; else undefined, which JSON leaves out. */
export function slotJson({ state, text, checks }: SlotView): unknown {
  return state === "completed" && checks?.violation === null ? jsonOfAnswer(text ?? "") : undefined;
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

/** The same as JSON text. A fulfilled value of the style `settled` has the parts of its answer beside it. */
export function resultJson(slot: SlotView, error: WireError | null, style: ErrorStyle): string {
  const result = slotResult(slot, error, style);
  const parts = style === "settled" ? partsOfSlot(slot) : undefined;
  return typeof result === "object" && result !== null ? withParts(result, parts) : JSON.stringify(result);
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
    // A recorded answer has figures, too: it cost nothing.
    usage: slot.attempts === 0 && slot.replayed !== true ? null : usageOf(slot),
    latency_ms: slot.attempts === 0 ? null : slot.latencyMs,
    queued_ms: slot.attempts === 0 ? null : slot.queuedMs,
    attempts: slot.attempts,
    finish_reason: slot.finishReason,
    json: slotJson(slot),
    capped_by: slot.cappedBy,
    upstream: slot.upstream,
    ...courseFields(slot),
    replayed: slot.replayed,
    estimated: slot.estimated,
  };
}
