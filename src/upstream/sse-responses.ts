/** Reads the stream of a Responses call. */
import { isRecord } from "./record.ts";
import { type FamilyReader, nameIn, PASS, type StreamFacts, type Verdict } from "./sse-reader.ts";
import { readResponsesUsage } from "./sse-usage.ts";

const TERMINAL = /^response\.(?:completed|incomplete|failed)$/;
const TELLING = /"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"|"error"\s*:\s*[{"]|^event: ?error/m;
const TERMINAL_HEAD =
  /(?:^|[\r\n])(?:event: ?|data: ?\{\s*"type"\s*:\s*")response\.(?:completed|incomplete|failed)["\r\n]/;
const PIECE = /"delta"\s*:\s*"/g;

const USAGE_PATH = ["response", "usage"];

export class ResponsesReader implements FamilyReader {
  readonly telling = TELLING;
  readonly endsAtDone = false;
  readonly piece = PIECE;

  read(json: Record<string, unknown>, facts: StreamFacts): Verdict {
    const { type, response } = json;
    if (!isRecord(response)) return PASS;
    facts.model ??= nameIn(response["model"]);
    if (typeof type !== "string" || !TERMINAL.test(type)) return PASS;
    facts.ended = true;
    const { incomplete_details: incomplete } = response;
    facts.finishReason = nameIn(isRecord(incomplete) ? incomplete["reason"] : null) ?? nameIn(response["status"]);
    facts.usage = readResponsesUsage(response["usage"]);
    return { strip: false, usagePath: USAGE_PATH };
  }

  isWhole(): boolean {
    return false;
  }

  endsWith(head: string): boolean {
    return TERMINAL_HEAD.test(head);
  }
}
