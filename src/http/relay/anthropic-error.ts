/** Errors in the words of Anthropic's API, whose clients sort them by their type. */
import type { WireError } from "../../errors.ts";

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"],
]);

/** The body of an error on Anthropic's routes: the gateway's own error, with the type that this API gives the status. */
export function anthropicError(status: number, error: WireError) {
  const type = TYPES.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { ...error, type } };
}

/** Whether a path belongs to Anthropic's API. */
export function isAnthropicPath(path: string): boolean {
  return path === "/v1/messages" || path.startsWith("/v1/messages/");
}
