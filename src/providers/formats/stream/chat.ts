/** Reads the stream of a chat completion or of a text completion. */
import { isRecord } from "../../../text/json/record.ts";
import { type EventEdit, type FamilyReader, nameIn, NO_EDIT, type StreamFacts } from "./family.ts";
import { readUsage, withServiceTier } from "../usage/usage.ts";

/** Who requested a usage chunk: the client, the gateway (which removes the chunk on its way), or neither. */
export type UsageChunk = "requested" | "injected" | "absent";

/** Choices whose ends are tracked: providers allow 128. A stream with more of them is whole only by its `[DONE]`. */
const CHOICES_MAX = 1_024;

/** Usage, errors, the end of a choice; also any choice but the first, because each must end. */
const MAY_REPORT =
  /"usage"\s*:\s*\{|"error"\s*:\s*[{"]|"object"\s*:\s*"error"|"finish_reason"\s*:\s*"|"index"\s*:\s*[1-9]|\[DONE\]|^event: ?error/m;
const CHAT_DELTA_TEXT = /"(?:content|reasoning|reasoning_content|refusal|arguments)"\s*:\s*"/g;
const COMPLETION_DELTA_TEXT = /"text"\s*:\s*"/g;

export class ChatReader implements FamilyReader {
  readonly mayReport = MAY_REPORT;
  readonly endsAtDone = true;
  readonly deltaText: RegExp;
  readonly #usageChunk: UsageChunk;
  readonly #finished = new Set<number>();
  #lastChoice = 0;
  #serviceTier: unknown = null;

  constructor(family: "chat" | "completions", usageChunk: UsageChunk) {
    this.deltaText = family === "chat" ? CHAT_DELTA_TEXT : COMPLETION_DELTA_TEXT;
    this.#usageChunk = usageChunk;
  }

  read(json: Record<string, unknown>, facts: StreamFacts): EventEdit {
    facts.model ??= nameIn(json["model"]);
    const choices: unknown[] = Array.isArray(json["choices"]) ? json["choices"] : [];
    for (const choice of choices) if (isRecord(choice)) this.#readChoice(choice, facts);
    // Each chunk names the tier; the chunk with the usage is the last one.
    this.#serviceTier = json["service_tier"] ?? this.#serviceTier;
    const usage = json["usage"];
    if (!isRecord(usage)) return NO_EDIT;
    const read = readUsage(usage);
    facts.usage = read === null ? null : withServiceTier(read, this.#serviceTier);
    const isUsageChunk = Array.isArray(json["choices"]) && choices.length === 0 && json["error"] == null;
    return { isRemoved: isUsageChunk && this.#usageChunk === "injected", usagePath: ["usage"] };
  }

  /**
   * Many servers send no `[DONE]`. A stream in which every choice has ended is whole, unless its client requested usage
   * and none arrived.
   */
  isWhole(facts: StreamFacts): boolean {
    const missesUsage = this.#usageChunk === "requested" && facts.usage === null;
    return this.#finished.size > this.#lastChoice && !missesUsage;
  }

  isLastEvent(): boolean {
    return false;
  }

  #readChoice(choice: Record<string, unknown>, facts: StreamFacts): void {
    const index = typeof choice["index"] === "number" ? choice["index"] : 0;
    this.#lastChoice = Math.max(this.#lastChoice, index);
    const reason = nameIn(choice["finish_reason"]);
    if (reason === null) return;
    if (index < CHOICES_MAX) this.#finished.add(index);
    if (index === 0) facts.finishReason = reason;
  }
}
