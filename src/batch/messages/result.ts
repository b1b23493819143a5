/** The lines of a message batch's results, as Anthropic documents them: one of four results for each `custom_id`. */
import { toWire, type Reason } from "../../errors.ts";
import { anthropicErrorType } from "../../providers/formats/anthropic/error-type.ts";
import { member, scanObject } from "../../text/json/scan.ts";
import type { NotRun } from "../lifecycle.ts";
import { oneLine, upstreamStatus, whyNotRun, type LineNames, type LineOutcome, type WrittenLine } from "../output.ts";

/** A line of the results, and the counter that it adds to. */
export type WrittenResult = Omit<WrittenLine, "counts"> & { counts: "completed" | "failed" | NotRun };

const encoder = new TextEncoder();

/** Anthropic's word for a request that did not run. */
const NOT_RUN: Readonly<Record<NotRun, "canceled" | "expired">> = { cancelled: "canceled", expired: "expired" };

/** Writes how one request ended. All results are in one file, whatever they are. */
export function writeResult(line: LineNames, outcome: LineOutcome): WrittenResult {
  switch (outcome.kind) {
    case "completed":
      return written(line, "completed", `{"type":"succeeded","message":${outcome.body}}`);
    case "not_run":
      return notRun(line, outcome.why);
    case "failed": {
      const why = whyNotRun(outcome.reason);
      if (why !== null) return notRun(line, why);
      const error = ownError(outcome.reason, outcome.upstreamBody) ?? gatewayError(outcome.reason, outcome.requestId);
      return written(line, "failed", `{"type":"errored","error":${error}}`);
    }
  }
}

function notRun(line: LineNames, why: NotRun): WrittenResult {
  return written(line, why, JSON.stringify({ type: NOT_RUN[why] }));
}

function written({ customId }: LineNames, counts: WrittenResult["counts"], result: string): WrittenResult {
  const text = `${oneLine(`{"custom_id":${JSON.stringify(customId)},"result":${result}}`)}\n`;
  return { file: "output", text, counts };
}

/** The upstream's own error, if it has Anthropic's form; its words about the gateway's key are not for the client. */
function ownError(reason: Reason, body: string | null): string | null {
  const status = upstreamStatus(reason);
  if (body === null || status === null || status < 400 || status === 401 || status === 403) return null;
  const scan = scanObject(encoder.encode(body));
  if (!scan.ok || member(scan.object, "error")?.kind !== "object") return null;
  return member(scan.object, "type") === null ? null : body;
}

/**
 * The gateway's error. One about the budget is no `billing_error` here: clients read every type but `invalid_request_error` as a request
 * that may be sent again as it is.
 */
function gatewayError(reason: Reason, requestId: string): string {
  const { status, error } = toWire(reason);
  const shown = upstreamStatus(reason) ?? status;
  const type = shown === 402 ? "invalid_request_error" : anthropicErrorType(shown);
  return JSON.stringify({ type: "error", error: { ...error, type }, request_id: requestId === "" ? null : requestId });
}
