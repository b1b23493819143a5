/** Reads the stream of an Anthropic message. */
import { readAnthropicUsage } from "../usage/anthropic.ts";
import { isRecord } from "../../../text/json/record.ts";
import { type EventEdit, type FamilyReader, nameIn, NO_EDIT, type StreamFacts } from "./family.ts";

const MAY_REPORT =
  /"type"\s*:\s*"(?:message_start|message_delta|message_stop|error)"|"error"\s*:\s*[{"]|^event: ?error/m;
const DELTA_TEXT = /"(?:text|partial_json|thinking)"\s*:\s*"/g;

const USAGE_PATH = ["usage"];

export class MessagesReader implements FamilyReader {
  readonly mayReport = MAY_REPORT;
  readonly endsAtDone = false;
  readonly deltaText = DELTA_TEXT;
  #startUsage: Record<string, unknown> = {};

  read(json: Record<string, unknown>, facts: StreamFacts): EventEdit {
    switch (json["type"]) {
      case "message_start":
        return this.#readStart(json["message"], facts);
      case "message_delta":
        return this.#readDelta(json, facts);
      case "message_stop":
        facts.ended = true;
        return NO_EDIT;
      default:
        return NO_EDIT;
    }
  }

  isWhole(): boolean {
    return false;
  }

  isLastEvent(): boolean {
    return false;
  }

  /** Its count of output tokens is that of the start, so this usage alone is incomplete. */
  #readStart(message: unknown, facts: StreamFacts): EventEdit {
    if (!isRecord(message)) return NO_EDIT;
    facts.model ??= nameIn(message["model"]);
    if (isRecord(message["usage"])) this.#startUsage = message["usage"];
    return NO_EDIT;
  }

  /** Its counts are totals, not additions; those that it leaves out are as the start named them. */
  #readDelta({ delta, usage }: Record<string, unknown>, facts: StreamFacts): EventEdit {
    if (isRecord(delta)) facts.finishReason = nameIn(delta["stop_reason"]) ?? facts.finishReason;
    if (!isRecord(usage)) return NO_EDIT;
    const named = Object.entries(usage).filter(([, value]) => value != null);
    facts.usage = readAnthropicUsage({ ...this.#startUsage, ...Object.fromEntries(named) });
    return { isRemoved: false, usagePath: USAGE_PATH };
  }
}
