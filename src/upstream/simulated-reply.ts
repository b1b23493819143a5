/** The simulated upstream's answers that are one JSON document, errors among them. */

const encoder = new TextEncoder();

/** Its length is announced so that it is read by the fast path, as most providers' answers are. */
export function jsonResponse(status: number, headers: Record<string, string>, value: unknown): Response {
  const bytes = encoder.encode(JSON.stringify(value));
  return new Response(bytes, {
    status,
    headers: { ...headers, "content-type": "application/json", "content-length": String(bytes.byteLength) },
  });
}

export function openaiError(status: number, message: string): unknown {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  const code = status === 404 ? "model_not_found" : null;
  return { error: { message, type, param: code === null ? null : "model", code } };
}

const ANTHROPIC_ERRORS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function anthropicError(status: number, message: string): unknown {
  const type = ANTHROPIC_ERRORS[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message } };
}
