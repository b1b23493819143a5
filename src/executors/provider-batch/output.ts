/** A line of a batch's output or error file as the outcome of its call. */
import { STANDARD_TIERS } from "../../run/money/service-tiers.ts";
import { BATCH_TIER, type Endpoint, type Included, type Lease, type Outcome, type Usage } from "../../call.ts";
import { unsentAt } from "../../run/steps/provider-settle.ts";
import { isRecord } from "../../text/json/record.ts";
import { classify } from "../../providers/classify.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { shownMessage, withoutSecretsIn } from "../../providers/redact.ts";
import { reportedError } from "../../providers/relay/types.ts";
import { classifyRaw } from "../../providers/stored-request.ts";
import { tryParseExact } from "../../text/json/exact.ts";
import { checkedOutcome } from "../checked-outcome.ts";

/**
 * Codes of calls on which OpenAI has not worked when their batch ended (its guide "Batch API"): it bills those that were
 * completed. Any other error without an answer may have been billed.
 */
const UNSENT_CODES: ReadonlySet<string> = new Set(["batch_expired", "batch_cancelled"]);

/** The fields of a line that name its call and its answer. Null: it is not a line of a batch's file. */
export type ReadLine = { customId: string; response: unknown; error: unknown };

export function readLine(text: string): ReadLine | null {
  const json = tryParseExact(text);
  if (!isRecord(json) || typeof json["custom_id"] !== "string") return null;
  return { customId: json["custom_id"], response: json["response"], error: json["error"] };
}

/**
 * `endpoint`: of a whole body of its client, whose answer is relayed as a whole, too. `checked`: the schema that the answer must fit;
 * absent = every answer is accepted.
 */
export type LineCall = {
  upstream: Upstream;
  model: string;
  endpoint?: Endpoint;
  checked?: { schema: Record<string, unknown>; lease: Lease };
  /** What the call asks for of the answer beside its text; absent = nothing. */
  include?: readonly Included[];
};

export function outcomeOfLine({ response, error }: ReadLine, call: LineCall, nowMs: number): Outcome {
  const { upstream, model, endpoint } = call;
  if (!isRecord(response) || typeof response["status_code"] !== "number") return outcomeOfError(error, upstream);
  const body = { ok: true, text: JSON.stringify(response["body"] ?? null) } as const;
  const answer = { status: response["status_code"], headers: new Headers(), nowMs, body };
  if (endpoint !== undefined) {
    const raw = classifyRaw(upstream, { model }, { endpoint }, answer, billedAtBatch);
    return { ...withoutSecretsIn(raw, upstream), latencyMs: 0 };
  }
  const outcome = { ...withoutSecretsIn(classify(upstream, model, answer, call.include), upstream), latencyMs: 0 };
  const billed = outcome.kind === "success" ? { ...outcome, usage: billedOf(outcome.usage) } : outcome;
  return call.checked === undefined ? billed : checkedOutcome(billed, call.checked.schema, call.checked.lease);
}

function billedOf(usage: Usage | null): Usage | null {
  return usage === null ? null : billedAtBatch(usage);
}

/**
 * The usage with the tier that it is billed at. In the files of OpenAI's batches, answers name the tier `default`, or none, and
 * the batch is billed at its own rates; an answer that names another tier is charged at that one's.
 */
function billedAtBatch(usage: Usage): Usage {
  const { serviceTier } = usage;
  const isOther = serviceTier !== undefined && !STANDARD_TIERS.has(serviceTier);
  return isOther ? usage : { ...usage, serviceTier: BATCH_TIER };
}

function outcomeOfError(error: unknown, upstream: Upstream): Outcome {
  const code = isRecord(error) && typeof error["code"] === "string" ? error["code"] : "";
  if (UNSENT_CODES.has(code)) {
    return { kind: "failure", ...unsentAt(upstream.name), answered: false, retryAfterMs: null, latencyMs: 0 };
  }
  const { name } = upstream;
  const said = isRecord(error) && typeof error["message"] === "string" ? shownMessage(error["message"], upstream) : "";
  const message = `${name} did not answer this call of its batch${said === "" ? "" : `: ${said}`}`;
  return { ...reportedError({ upstream }, message, code), latencyMs: 0 };
}
