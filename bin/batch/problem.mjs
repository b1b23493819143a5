/** Why a request did not succeed, in words that say what to do about it. */
import { Failure } from "./failure.mjs";
import { causeOf } from "./http.mjs";
import { memberOf, parseJson, textOf } from "./json.mjs";
import { printable } from "./printable.mjs";

/** `passing`: the same request may succeed a little later, `afterMs` later where the server says so. */
export class Problem extends Failure {
  /** @readonly */
  passing;
  /** @readonly */
  status;
  /** @readonly */
  afterMs;

  /**
   * @param {string} message
   * @param {{ passing: boolean, status?: number | null, afterMs?: number | null }} facts `status` null = no answer.
   */
  constructor(message, { passing, status = null, afterMs = null }) {
    super(message);
    this.passing = passing;
    this.status = status;
    this.afterMs = afterMs;
  }
}

/**
 * No answer, or one that broke off.
 * @param {string} url
 * @param {unknown} error
 */
export function unreachable(url, error) {
  const cause = printable(causeOf(error));
  const { origin } = new URL(url);
  const message =
    cause === "ECONNREFUSED"
      ? `Nothing listens at ${origin}. Start the gateway with npm start, or name another with --url or FANOUT_URL.`
      : `Cannot reach ${origin}: ${cause}.`;
  return new Problem(message, { passing: true });
}

/**
 * An answer other than 200.
 * @param {{ method: string, url: string, tokenFrom: string }} request
 * @param {{ status: number, headers: Record<string, unknown>, text: string }} answer
 */
export function refused({ method, url, tokenFrom }, { status, headers, text }) {
  const body = parseJson(text);
  const error = memberOf(body, "error");
  const said = printable(textOf(error, "message") ?? textOf(body, "message") ?? text);
  const because = said === "" ? "" : ` (${said})`;
  const isFinal = headers["x-should-retry"] === "false" || memberOf(error, "retryable") === false;
  const passing = !isFinal && (status === 408 || status === 429 || status >= 500);
  const facts = { passing, status, afterMs: afterMsOf(headers) };
  const { pathname, origin } = new URL(url);
  if (status === 401) {
    return new Problem(`${origin} does not accept the token from ${tokenFrom}${because}.`, facts);
  }
  if (status === 402) return new Problem(`The run's budget does not pay for this${because}.`, facts);
  if (status >= 300 && status < 400) {
    const place = printable(String(headers["location"] ?? "elsewhere"));
    return new Problem(`${origin} redirects to ${place}. Name that server with --url.`, facts);
  }
  return new Problem(`${method} ${printable(pathname)} answered ${status}${because}.`, facts);
}

/** @param {Record<string, unknown>} headers */
function afterMsOf(headers) {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  const s = Number(headers["retry-after"] ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  return Number.isFinite(s) ? Math.max(0, s * 1000) : null;
}
