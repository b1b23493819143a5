/** Reads an OpenAI-style chat completion. */
import type { Answer, AnswerParts, Included } from "../../../call.ts";
import { isRecord } from "../../../text/json/record.ts";
import { choiceParts } from "./message.ts";
import { readUsage, withServiceTier } from "../usage/usage.ts";

/** The parts of an answer, or its fault in words that follow "answered 200". */
export type AnswerRead =
  | (Omit<Answer, "model" | "finishReason" | "parts"> & {
      ok: true;
      model: unknown;
      finishReason: unknown;
      /** What the answer has beside its text, of what is included or is more than text; from the body that was parsed. */
      partsIn: (body: string, include: readonly Included[]) => AnswerParts | undefined;
    })
  | { ok: false; fault: string };

/** Reads a parsed body that reports no error. */
export function readCompletion(json: unknown): AnswerRead {
  const choices = isRecord(json) ? json["choices"] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = isRecord(choice) ? choice["message"] : undefined;
  if (!isRecord(json) || !isRecord(choice) || !isRecord(message)) {
    return { ok: false, fault: "without choices[0].message: not a chat completion" };
  }
  const text = messageText(message);
  if (text === null) return { ok: false, fault: "with a choices[0].message.content that is not text" };
  const { model, service_tier: tier } = json;
  const usage = readUsage(json["usage"]);
  const finishReason = choice["finish_reason"];
  const refusal = message["refusal"];
  const refused = typeof refusal === "string" && refusal !== "" ? { refused: true as const } : {};
  const partsIn = (body: string, include: readonly Included[]) => choiceParts(body, choice, include);
  const read = { ok: true as const, text, model, finishReason, partsIn, ...refused };
  return { ...read, usage: usage === null ? null : withServiceTier(usage, tier) };
}

/** The text of a message: its content, its text parts joined, the refusal, or "" beside tool calls. */
function messageText(message: Record<string, unknown>): string | null {
  const { content, refusal } = message;
  if (typeof content === "string" && content !== "") return content;
  if (Array.isArray(content)) return content.map(partText).join("");
  if (content != null && content !== "") return null;
  return typeof refusal === "string" ? refusal : "";
}

function partText(part: unknown): string {
  if (!isRecord(part)) return "";
  return typeof part["text"] === "string" ? part["text"] : "";
}
