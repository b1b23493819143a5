/** Errors in the words of Anthropic's API, whose clients sort them by their type. */
import type { WireError } from "../errors.ts";
import { anthropicErrorType } from "../providers/formats/anthropic/error-type.ts";

/** The body of an error on Anthropic's routes: the gateway's own error, with the type that this API gives the status. */
export function anthropicError(status: number, error: WireError) {
  return { type: "error", error: { ...error, type: anthropicErrorType(status) } };
}

/** Whether a path belongs to Anthropic's API. */
export function isAnthropicPath(path: string): boolean {
  return path === "/v1/messages" || path.startsWith("/v1/messages/");
}
