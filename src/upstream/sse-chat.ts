/** Reads the stream of a chat completion or of a text completion. */
import { isRecord } from "./record.ts";
import { type FamilyReader, nameIn, PASS, type StreamFacts, type Verdict } from "./sse-reader.ts";
import { readUsage } from "./usage.ts";

/** How usage came to be asked of the upstream: by the client, by the gateway in its place, or not at all. */
export type UsageChunk = "asked" | "injected" | "absent";

/** Choices whose ends are told apart: providers allow 128. A stream with more of them is whole only by its `[DONE]`. */
const CHOICES_MAX = 1_024;

/** Usage, errors, ends of choices; a choice other than the first, as it must have an end of its own. */
const TELLING =
  /"usage"\s*:\s*\{|"error"\s*:\s*[{"]|"object"\s*:\s*"error"|"finish_reason"\s*:\s*"|"index"\s*:\s*[1-9]|\[DONE\]|^event: ?error/m;
const CHAT_PIECE = /"(?:content|reasoning|reasoning_content|refusal|arguments)"\s*:\s*"/g;
const COMPLETION_PIECE = /"text"\s*:\s*"/g;

export class ChatReader implements FamilyReader {
  readonly telling = TELLING;
  readonly endsAtDone = true;
  readonly piece: RegExp;
  readonly #usageChunk: UsageChunk;
  readonly #finished = new Set<number>();
  #lastChoice = 0;

  constructor(family: "chat" | "completions", usageChunk: UsageChunk) {
    this.piece = family === "chat" ? CHAT_PIECE : COMPLETION_PIECE;
    this.#usageChunk = usageChunk;
  }

  read(json: Record<string, unknown>, facts: StreamFacts): Verdict {
    facts.model ??= nameIn(json["model"]);
    const choices: unknown[] = Array.isArray(json["choices"]) ? json["choices"] : [];
    for (const choice of choices) if (isRecord(choice)) this.#readChoice(choice, facts);
    const usage = json["usage"];
    if (!isRecord(usage)) return PASS;
    facts.usage = readUsage(usage);
    const extra = Array.isArray(json["choices"]) && choices.length === 0 && json["error"] == null;
    return { strip: extra && this.#usageChunk === "injected", usagePath: ["usage"] };
  }

  /**
   * Many servers send no `[DONE]`. One that has ended every choice in order has said all; only a client that asked for
   * usage still misses something while none came.
   */
  isWhole(facts: StreamFacts): boolean {
    const missesUsage = this.#usageChunk === "asked" && facts.usage === null;
    return this.#finished.size > this.#lastChoice && !missesUsage;
  }

  endsWith(): boolean {
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
