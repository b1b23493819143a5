/**
 * The beginning of a call that its client has marked for its provider's cache. Calls with the same one share it: one of them writes
 * it, and the others wait for that, as for a context.
 */
import type { CallBody, SharedPrefix } from "../../call.ts";
import { isRecord } from "../../text/json/record.ts";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN } from "../../limits.ts";

/** The fields that say: cache the prompt up to this block. */
const MARKS = ["cache_control", "prompt_cache_breakpoint"];

/**
 * The prefix up to the first mark that is far enough from the beginning: what follows it may be the call's own. Null = there is no
 * such mark in the messages. Nothing behind that mark is read.
 */
export function markedPrefix({
  system = "",
  params,
  schema,
  messages = [],
}: CallBody): Pick<SharedPrefix, "key" | "tokens" | "own"> | null {
  const digest = new TextDigest();
  digest.add(frameName(system, params?.["tools"], schema));
  let chars = system.length;
  for (const message of messages) {
    const content = isRecord(message) ? message["content"] : null;
    const blocks: unknown[] = Array.isArray(content) ? content : [content];
    digest.add(JSON.stringify([isRecord(message) ? message["role"] : null]));
    for (const block of blocks) {
      const text = JSON.stringify(block) ?? "";
      digest.add(text);
      chars += text.length;
      const isMarked = isRecord(block) && MARKS.some((mark) => isRecord(block[mark]));
      if (!isMarked || chars < PREFIX_BYTES_MIN) continue;
      return { key: `own_${digest.name()}`, tokens: Math.floor(chars / PREFIX_BYTES_PER_TOKEN), own: true };
    }
  }
  return null;
}

type Frame = { system: string; tools: unknown; schema: unknown; name: string };

/** The frame that was named last: the calls of a batch have the same values, which are not read once per call. */
let lastFrame: Frame = { system: "", tools: undefined, schema: undefined, name: "" };

/** What stands before the messages. */
function frameName(system: string, tools: unknown, schema: unknown): string {
  if (lastFrame.tools !== tools || lastFrame.schema !== schema || lastFrame.system !== system) {
    const digest = new TextDigest();
    digest.add(JSON.stringify([system, tools ?? null, schema ?? null]));
    lastFrame = { system, tools, schema, name: digest.name() };
  }
  return lastFrame.name;
}

/**
 * A digest of 64 bits: two of FNV-1a's with different primes. Texts that meet by intent make their own run's calls wait for each
 * other once, and nothing else.
 */
class TextDigest {
  #low = 0x811c9dc5;
  #high = 0x9e3779b9;

  add(text: string): void {
    let low = this.#low;
    let high = this.#high;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      low = Math.imul(low ^ unit, 0x01000193);
      high = Math.imul(high ^ unit, 0x85ebca6b);
    }
    // Texts are kept apart: "ab", "c" is not "a", "bc".
    this.#low = Math.imul(low ^ text.length, 0x01000193);
    this.#high = Math.imul(high ^ text.length, 0x85ebca6b) ^ (high >>> 15);
  }

  name(): string {
    return [this.#low, this.#high].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
