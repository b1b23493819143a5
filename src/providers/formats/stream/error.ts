/** Errors inside a stream: those an upstream reports, and the one the gateway ends a broken stream with. */
import { type Reason, toWire } from "../../../errors.ts";
import { isRecord } from "../../../text/json/record.ts";

/** The API families whose streams the gateway relays, by their endpoint. */
export type StreamFamily = "chat" | "completions" | "responses" | "messages";

/** An error that an upstream reported in its stream, in its own words: nothing is redacted. */
export type StreamError = { message: string; code: string | null };

/** `isNoticed`: the protocol's clients throw at this form of error, so that no error event need be added. */
export type ReportedError = StreamError & { isNoticed: boolean };

const encoder = new TextEncoder();

/**
 * The error that an event reports: a top-level `error`, a flat object that calls itself one, or an error of the
 * response or the first choice inside. Clients throw at an event of that name, those of OpenAI's protocols also at a
 * top-level `error`.
 */
export function reportedError(family: StreamFamily, name: string | null, json: unknown): ReportedError | null {
  if (!isRecord(json)) return null;
  const { error, choices, response } = json;
  const hasText = typeof error === "string" && error !== "";
  const isNoticed = name === "error" || (family !== "messages" && (isRecord(error) || hasText));
  if (isRecord(error)) return described(error, isNoticed);
  if (hasText) return { message: error, code: codeOf(json), isNoticed };
  if (name === "error" || json["type"] === "error" || json["object"] === "error") return described(json, isNoticed);
  // Clients of this family see that a response failed, and why.
  if (isRecord(response) && isRecord(response["error"])) return described(response["error"], true);
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(choice) && isRecord(choice["error"]) ? described(choice["error"], false) : null;
}

/** The message and code of an error object. Some routers use a number as code; the type replaces a missing code. */
function described(error: Record<string, unknown>, isNoticed: boolean): ReportedError {
  const message = typeof error["message"] === "string" ? error["message"] : "no message";
  return { message, code: codeOf(error), isNoticed };
}

function codeOf({ code, type }: Record<string, unknown>): string | null {
  if (typeof code === "number" || (typeof code === "string" && code !== "")) return String(code);
  return typeof type === "string" && type !== "error" ? type : null;
}

/**
 * The event that reports a broken stream: the clients of each family throw at this form and at no other.
 * `sequenceNumber` counts the events of a Responses stream and appears there only.
 */
export function errorEvent(family: StreamFamily, reason: Reason, sequenceNumber: number): Uint8Array {
  const { message, type, param, code } = toWire(reason).error;
  switch (family) {
    case "chat":
    case "completions":
      return event("", { error: { message, type, param, code } });
    case "responses":
      return event("event: error\n", { type: "error", code, message, param, sequence_number: sequenceNumber });
    case "messages":
      return event("event: error\n", { type: "error", error: { type: "api_error", message } });
  }
}

function event(name: string, data: unknown): Uint8Array {
  return encoder.encode(`${name}data: ${JSON.stringify(data)}\n\n`);
}
