/** Which gate of a cascade stops the answer of an attempt. */
import { jsonInAnswer } from "../answers/answer-json.ts";
import { compared } from "../answers/json-gate.ts";
import { votedText } from "../answers/voted-text.ts";
import type { Cascade, Gate, JsonGate, Outcome } from "../../call.ts";

/** What stopped an answer: a gate, or the condition on its JSON. */
export type Stopped = Gate | "json";

/** Finish reasons of answers that the provider refused to give, or stopped; OpenAI's and Anthropic's. */
const REFUSED: ReadonlySet<string> = new Set(["content_filter", "refusal"]);

/** The gate that stops the outcome; null = it may be delivered, or failed in a way that another model would not mend. */
export function gateOf(outcome: Outcome, { on, json }: Cascade): Stopped | null {
  const found = outcome.kind === "failure" ? gateOfFailure(outcome) : gateOfAnswer(outcome);
  if (found !== null && on.includes(found)) return found;
  return outcome.kind === "success" && json !== undefined && holds(outcome.text, json) ? "json" : null;
}

function gateOfFailure({ reason }: Extract<Outcome, { kind: "failure" }>): Gate | null {
  if (reason.reason === "schema_violation") return "schema_violation";
  // Azure's filter answers a prompt that it stops with an error.
  return reason.reason === "upstream_error" && /^content_?filter$/i.test(reason.upstreamCode ?? "") ? "refusal" : null;
}

function gateOfAnswer(answer: Extract<Outcome, { kind: "success" }>): Gate | null {
  const { finishReason, refused, cappedBy } = answer;
  if (refused === true || (finishReason !== null && REFUSED.has(finishReason))) return "refusal";
  // The budget has cut it: another model would be cut, too.
  if (finishReason === "length" && cappedBy === undefined) return "length";
  return votedText(answer).trim() === "" ? "empty" : null;
}

/** Whether a condition holds. An answer without such a value cannot show that it does not. */
function holds(text: string, gate: JsonGate): boolean {
  return compared(jsonInAnswer(text), gate) ?? true;
}
