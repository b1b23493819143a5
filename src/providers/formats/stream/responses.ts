/** Reads the stream of a Responses call. */
import { isRecord } from "../../../text/json/record.ts";
import { type EventEdit, type FamilyReader, nameIn, NO_EDIT, type StreamFacts } from "./family.ts";
import { readResponsesUsage } from "../usage/responses.ts";
import { withServiceTier } from "../usage/usage.ts";

const TERMINAL = /^response\.(?:completed|incomplete|failed)$/;
const MAY_REPORT =
  /"type"\s*:\s*"(?:response\.(?:created|completed|incomplete|failed)|error)"|"error"\s*:\s*[{"]|^event: ?error/m;
const TERMINAL_HEAD =
  /(?:^|[\r\n])(?:event: ?|data: ?\{\s*"type"\s*:\s*")response\.(?:completed|incomplete|failed)["\r\n]/;
const DELTA_TEXT = /"delta"\s*:\s*"/g;

const USAGE_PATH = ["response", "usage"];

export class ResponsesReader implements FamilyReader {
  readonly mayReport = MAY_REPORT;
  readonly endsAtDone = false;
  readonly deltaText = DELTA_TEXT;

  read(json: Record<string, unknown>, facts: StreamFacts): EventEdit {
    const { type, response } = json;
    if (!isRecord(response)) return NO_EDIT;
    facts.model ??= nameIn(response["model"]);
    facts.id ??= nameIn(response["id"]);
    if (typeof type !== "string" || !TERMINAL.test(type)) return NO_EDIT;
    facts.ended = true;
    const { incomplete_details: incomplete } = response;
    facts.finishReason = nameIn(isRecord(incomplete) ? incomplete["reason"] : null) ?? nameIn(response["status"]);
    const usage = readResponsesUsage(response["usage"]);
    facts.usage = usage === null ? null : withServiceTier(usage, response["service_tier"]);
    return { isRemoved: false, usagePath: USAGE_PATH };
  }

  isWhole(): boolean {
    return false;
  }

  isLastEvent(head: string): boolean {
    return TERMINAL_HEAD.test(head);
  }
}
