/**
 * The beginning of a call that its client has marked for its provider's cache. Calls with the same one share it: one of them writes
 * it, and the others wait for that, as for a context.
 */
import type { CallBody, SharedPrefix } from "../../call.ts";
import { isRecord } from "../../text/json/record.ts";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN } from "../../limits.ts";
import { CACHE_MARKS, PrefixDigest } from "../../providers/formats/request/prefix-digest.ts";

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
  const digest = new PrefixDigest();
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
      const isMarked = isRecord(block) && CACHE_MARKS.some((mark) => isRecord(block[mark]));
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
    const digest = new PrefixDigest();
    digest.add(JSON.stringify([system, tools ?? null, schema ?? null]));
    lastFrame = { system, tools, schema, name: digest.name() };
  }
  return lastFrame.name;
}
