/** Reads the stream of an Anthropic message. */
import { readAnthropicUsage } from "./anthropic-usage.ts";
import { isRecord } from "./record.ts";
import { type FamilyReader, nameIn, PASS, type StreamFacts, type Verdict } from "./sse-reader.ts";

const TELLING = /"type"\s*:\s*"(?:message_start|message_delta|message_stop|error)"|"error"\s*:\s*[{"]|^event: ?error/m;
const PIECE = /"(?:text|partial_json|thinking)"\s*:\s*"/g;

const USAGE_PATH = ["usage"];

export class MessagesReader implements FamilyReader {
  readonly telling = TELLING;
  readonly endsAtDone = false;
  readonly piece = PIECE;
  #startUsage: Record<string, unknown> = {};

  read(json: Record<string, unknown>, facts: StreamFacts): Verdict {
    switch (json["type"]) {
      case "message_start":
        return this.#readStart(json["message"], facts);
      case "message_delta":
        return this.#readDelta(json, facts);
      case "message_stop":
        facts.ended = true;
        return PASS;
      default:
        return PASS;
    }
  }

  isWhole(): boolean {
    return false;
  }

  endsWith(): boolean {
    return false;
  }

  /** Its count of output tokens is a beginning, so this usage alone is none. */
  #readStart(message: unknown, facts: StreamFacts): Verdict {
    if (!isRecord(message)) return PASS;
    facts.model ??= nameIn(message["model"]);
    if (isRecord(message["usage"])) this.#startUsage = message["usage"];
    return PASS;
  }

  /** Its counts are totals, not additions; those it leaves out stand as the start named them. */
  #readDelta({ delta, usage }: Record<string, unknown>, facts: StreamFacts): Verdict {
    if (isRecord(delta)) facts.finishReason = nameIn(delta["stop_reason"]) ?? facts.finishReason;
    if (!isRecord(usage)) return PASS;
    const named = Object.entries(usage).filter(([, value]) => value != null);
    facts.usage = readAnthropicUsage({ ...this.#startUsage, ...Object.fromEntries(named) });
    return { strip: false, usagePath: USAGE_PATH };
  }
}
