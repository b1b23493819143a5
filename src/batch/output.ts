/**
 * The lines of a batch's output and error files. A line is one line for every reader: Python's `splitlines()` ends one
 * at U+2028, U+2029 and U+0085 too, which JSON allows in strings, so these are written as escapes.
 */
import { toWire, type ErrorType, type Reason } from "../errors.ts";
import { member, scanObject } from "../text/json/scan.ts";
import type { NotRun } from "./lifecycle.ts";

/** How a line of the input ended. */
export type LineOutcome =
  /** The upstream answered without an error. `body` is the JSON text of its answer, which must be JSON. */
  | { kind: "completed"; statusCode: number; requestId: string; body: string }
  /** `upstreamBody` is the upstream's answer without credentials, perhaps cut short; null = there is none. */
  | { kind: "failed"; reason: Reason; requestId: string; upstreamBody: string | null }
  /** It never ran, or was stopped. */
  | { kind: "not_run"; why: NotRun };

/** A line to write, with the `\n` at its end, its file, and the counter that it adds to, null = none. */
export type WrittenLine = {
  file: "output" | "error";
  text: string;
  counts: "completed" | "failed" | null;
};

/** The id of a line, the same each time it is written; `index` counts the requests of the batch from 0. */
export function batchRequestId(batchId: string, index: number): string {
  return `batch_req_${batchId.replace(/^batch_/, "")}_${index}`;
}

/** Writes how one line ended. */
export function writeLine(line: LineNames, outcome: LineOutcome): WrittenLine {
  switch (outcome.kind) {
    case "completed": {
      const response = responseText(outcome.statusCode, outcome.requestId, outcome.body);
      return { file: "output", text: lineText(line, response, "null"), counts: "completed" };
    }
    case "not_run":
      return notRun(line, outcome.why);
    case "failed": {
      const why = whyNotRun(outcome.reason);
      return why === null ? failed(line, outcome) : notRun(line, why);
    }
  }
}

/** The names of a line. */
export type LineNames = { id: string; customId: string };

const NOT_RUN: Readonly<Record<NotRun, { code: string; message: string }>> = {
  cancelled: {
    code: "batch_cancelled",
    message: "This request could not be executed before the batch was cancelled.",
  },
  expired: {
    code: "batch_expired",
    message: "This request could not be executed before the completion window expired.",
  },
};

function notRun(line: LineNames, why: NotRun): WrittenLine {
  return { file: "error", text: lineText(line, "null", JSON.stringify(NOT_RUN[why])), counts: null };
}

/** Why a slot was cancelled: with its group, or by its deadline, which is the batch's window. */
export function whyNotRun({ reason }: Reason): NotRun | null {
  if (reason === "cancelled") return "cancelled";
  return reason === "deadline_exceeded" ? "expired" : null;
}

function failed(line: LineNames, outcome: Extract<LineOutcome, { kind: "failed" }>): WrittenLine {
  const { reason, requestId, upstreamBody } = outcome;
  const { message, code } = toWire(reason).error;
  const status = upstreamStatus(reason);
  if (status === null) {
    const shown = reason.reason === "upstream_timeout" ? "request_timeout" : code;
    return { file: "error", text: lineText(line, "null", JSON.stringify({ code: shown, message })), counts: "failed" };
  }
  // An upstream's words about the gateway's key, or with a status that is not an error, are not for the client.
  const isOwn = status >= 400 && status !== 401 && status !== 403;
  const clientBody = isOwn && upstreamBody !== null && isErrorBody(upstreamBody) ? upstreamBody : null;
  const statusCode = isOwn ? status : 502;
  const body = clientBody ?? JSON.stringify({ error: { message, type: errorType(statusCode), param: null, code } });
  return {
    file: "error",
    text: lineText(line, responseText(statusCode, requestId, body), "null"),
    counts: "failed",
  };
}

/** The status of the upstream's answer; null if it did not answer. */
export function upstreamStatus(reason: Reason): number | null {
  if (reason.reason === "upstream_rate_limited") return 429;
  return reason.reason === "upstream_error" ? reason.status : null;
}

const encoder = new TextEncoder();

/** Whether a text is JSON in the form of an error: an object with an `error` object. */
function isErrorBody(text: string): boolean {
  const scan = scanObject(encoder.encode(text));
  return scan.ok && member(scan.object, "error")?.kind === "object";
}

function errorType(status: number): ErrorType {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

function responseText(statusCode: number, requestId: string, body: string): string {
  return `{"status_code":${statusCode},"request_id":${JSON.stringify(requestId)},"body":${body}}`;
}

function lineText({ id, customId }: LineNames, response: string, error: string): string {
  const names = `"id":${JSON.stringify(id)},"custom_id":${JSON.stringify(customId)}`;
  return `${oneLine(`{${names},"response":${response},"error":${error}}`)}\n`;
}

const SEPARATORS = /[\n\r\u0085\u2028\u2029]/;

/** JSON on one line. In valid JSON, line feeds occur only between tokens, and the other separators only within strings. */
export function oneLine(json: string): string {
  if (!SEPARATORS.test(json)) return json;
  return json
    .replace(/[\n\r]+/g, " ")
    .replace(/[\u0085\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
