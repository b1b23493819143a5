/** Errors inside a stream: those an upstream reports, and the one the gateway ends a broken stream with. */
import { type Reason, toWire } from "../errors.ts";
import { isRecord } from "./record.ts";

/** The protocols whose streams the gateway passes on, by their endpoint. */
export type StreamFamily = "chat" | "completions" | "responses" | "messages";

/** An error that an upstream reported in its stream, in its own words: nothing is redacted. */
export type StreamError = { message: string; code: string | null };

/** `heard`: its form is one at which the protocol's clients throw, so nothing need be added for them to notice. */
export type ReportedError = StreamError & { heard: boolean };

const encoder = new TextEncoder();

/**
 * The error that an event reports: a top-level `error`, a flat object that calls itself one, or an error of the
 * response or the first choice inside. Clients throw at an event of that name, those of OpenAI's protocols also at a top-level `error`.
 */
export function reportedError(family: StreamFamily, name: string | null, json: unknown): ReportedError | null {
  if (!isRecord(json)) return null;
  const { error, choices, response } = json;
  const hasText = typeof error === "string" && error !== "";
  const heard = name === "error" || (family !== "messages" && (isRecord(error) || hasText));
  if (isRecord(error)) return described(error, heard);
  if (hasText) return { message: error, code: codeOf(json), heard };
  if (name === "error" || json["type"] === "error" || json["object"] === "error") return described(json, heard);
  // Its clients see that a response failed, and why.
  if (isRecord(response) && isRecord(response["error"])) return described(response["error"], true);
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(choice) && isRecord(choice["error"]) ? described(choice["error"], false) : null;
}

/** The message and code of an error object. A code is a number with some routers; a type stands in for none. */
function described(error: Record<string, unknown>, heard: boolean): ReportedError {
  const message = typeof error["message"] === "string" ? error["message"] : "no message";
  return { message, code: codeOf(error), heard };
}

function codeOf({ code, type }: Record<string, unknown>): string | null {
  if (typeof code === "number" || (typeof code === "string" && code !== "")) return String(code);
  return typeof type === "string" && type !== "error" ? type : null;
}

/**
 * The event that tells the clients of a family that their stream broke: each throws at this form and at no other.
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
