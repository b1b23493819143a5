/** The types by which Anthropic's clients sort errors. */

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

/** The status that an error of this type has. */
export function anthropicErrorStatus(type: string): number {
  if (type === "invalid_request_error") return 400;
  if (type === "overloaded_error") return 529;
  for (const [status, named] of TYPES) if (named === type) return status;
  return 500;
}

/** The type that Anthropic's API gives an error with this status. */
export function anthropicErrorType(status: number): string {
  return TYPES.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
}
