/** The request for another answer after one that does not fit: the first request, the answer, and what is wrong with it. */
import type { CallBody } from "../../call.ts";
import { SCHEMA_REPAIR_CHARS_MAX } from "../../limits.ts";
import { normalisedGrowth } from "../tokens/normalised-bytes.ts";
import { schemaInstruction } from "./forms.ts";

/** An answer that does not fit, and why. */
export type Repair = { text: string; violation: string };

const encoder = new TextEncoder();

/** The body of the request. Its schema is stated once more: a provider that ignores the field for it has not shown it. */
export function repairedBody(body: CallBody, repair: Repair): CallBody {
  const { prompt, messages, ...rest } = body;
  const before = messages ?? [{ role: "user", content: prompt ?? "" }];
  return { ...rest, messages: [...before, ...addedMessages(body.schema ?? {}, repair)] };
}

/** Bytes that the request has more than the first one, for its reservation: those of `repairedBody`, as tokenizers read them. */
export function repairBytes(schema: Readonly<Record<string, unknown>>, repair: Repair): number {
  let bytes = 0;
  for (const { content } of addedMessages(schema, repair)) {
    bytes += encoder.encode(content).length + normalisedGrowth(content);
  }
  return bytes;
}

/** At most REPAIR_MESSAGES_MAX. */
function addedMessages(schema: Readonly<Record<string, unknown>>, { text, violation }: Repair) {
  const shown = shownOf(text);
  // Providers refuse messages without text.
  const answer = shown === "" ? [] : [{ role: "assistant", content: shown }];
  const wrong = `That answer does not fit: ${violation}. ${schemaInstruction(schema)}`;
  return [...answer, { role: "user", content: wrong }];
}

function shownOf(text: string): string {
  const trimmed = text.trim();
  if (trimmed.length <= SCHEMA_REPAIR_CHARS_MAX) return trimmed.toWellFormed();
  return `${trimmed.slice(0, SCHEMA_REPAIR_CHARS_MAX).toWellFormed()}…`;
}
