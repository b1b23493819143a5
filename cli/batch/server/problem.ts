/** Why a request failed, as a message that says what to do. */
import { Failure } from "../../failure.ts";
import { causeOf } from "./http.ts";
import { memberOf, parseJson, textOf } from "../../text/json.ts";
import { printable } from "../../text/printable.ts";

/** `isTransient`: the same request may succeed later, after `afterMs` if the server says so. */
export class Problem extends Failure {
  readonly isTransient;
  readonly status;
  readonly afterMs;

  /** @param facts `status` null: no response. */
  constructor(
    message: string,
    {
      isTransient,
      status = null,
      afterMs = null,
    }: { isTransient: boolean; status?: number | null; afterMs?: number | null },
  ) {
    super(message);
    this.isTransient = isTransient;
    this.status = status;
    this.afterMs = afterMs;
  }
}

/** There was no response, or it was cut off. */
export function unreachable(url: string, error: unknown): Problem {
  const cause = printable(causeOf(error));
  const { origin } = new URL(url);
  const message =
    cause === "ECONNREFUSED"
      ? `Nothing listens at ${origin}. Start the gateway with npm start, or name another one with --url or FANOUT_URL.`
      : `Cannot reach ${origin}: ${cause}.`;
  return new Problem(message, { isTransient: true });
}

/** A response other than 200. */
export function refused(
  { method, url, tokenFrom }: { method: string; url: string; tokenFrom: string },
  { status, headers, text }: { status: number; headers: Record<string, unknown>; text: string },
) {
  const body = parseJson(text);
  const error = memberOf(body, "error");
  const detail = printable(textOf(error, "message") ?? textOf(body, "message") ?? text);
  const because = detail === "" ? "" : ` (${detail})`;
  const isFinal = headers["x-should-retry"] === "false" || memberOf(error, "retryable") === false;
  const isTransient = !isFinal && (status === 408 || status === 429 || status >= 500);
  const facts = { isTransient, status, afterMs: afterMsOf(headers) };
  const { pathname, origin } = new URL(url);
  if (status === 401) {
    return new Problem(`${origin} does not accept the token from ${tokenFrom}${because}.`, facts);
  }
  if (status === 402) return new Problem(`The run's budget does not cover this request${because}.`, facts);
  if (status >= 300 && status < 400) {
    const place = printable(String(headers["location"] ?? "elsewhere"));
    return new Problem(`${origin} redirects to ${place}. To use that server, pass it as --url.`, facts);
  }
  return new Problem(`${method} ${printable(pathname)} returned ${status}${because}.`, facts);
}

function afterMsOf(headers: Record<string, unknown>) {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  const s = Number(headers["retry-after"] ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  return Number.isFinite(s) ? Math.max(0, s * 1000) : null;
}
