/**
 * The request of a call that refers to a context: it is built with a marker where the text goes, and sent with the text. Texts that
 * calls share are marked for their provider's cache.
 */
import type { CacheMark, CallBody } from "../../call.ts";
import { isRecord } from "../../text/json/record.ts";
import { CHUNK_PLACE, CONTEXT_SEPARATOR } from "../../limits.ts";

/** The body with a marker in place of its context. `mark`: how the marker is marked for the cache; absent = not at all. */
export function bodyWithMarker({ context, ...body }: CallBody, marker: string, mark?: CacheMark): CallBody {
  if (context === undefined) return body;
  const { prompt, messages } = body;
  if (context.place === "template") {
    const whole = withChunk(body, marker);
    return mark === undefined ? whole : withMarkedSystem(whole, mark);
  }
  const marked = mark === undefined ? body : { ...body, ...paramsWith(body.params, mark) };
  const block = blockOf(marker, mark);
  if (context.place === "system") return inSystem(marked, marker, block);
  if (messages !== undefined) return { ...marked, messages: inMessages(messages, block ?? marker) };
  if (block === null) return { ...marked, prompt: before(marker, prompt) };
  const { prompt: _, ...rest } = marked;
  return { ...rest, messages: [{ role: "user", content: withNext(block, prompt) }] };
}

/** The body with its system message marked for the cache: calls share that. */
export function withMarkedSystem(body: CallBody, mark: CacheMark): CallBody {
  const { system, prompt, messages, ...rest } = body;
  if (system === undefined) return body;
  const params = paramsWith(body.params, mark);
  const block = blockOf(system, mark);
  if (block === null) return { ...body, ...params };
  const others = messages ?? [{ role: "user", content: prompt ?? "" }];
  return { ...rest, ...params, messages: [{ role: "system", content: [block] }, ...others] };
}

const SYSTEM_ROLES: readonly unknown[] = ["system", "developer"];

/** A block of text with a field that says: cache the prompt up to here. */
type Block = { type: "text"; text: string; [mark: string]: unknown };

/** The block of a marked text; null = the text needs none. */
function blockOf(text: string, mark: CacheMark | undefined): Block | null {
  if (mark?.by === "cache_control") {
    const ttl = mark.ttl === undefined ? {} : { ttl: mark.ttl };
    return { type: "text", text, cache_control: { type: "ephemeral", ...ttl } };
  }
  if (mark?.by === "breakpoint") return { type: "text", text, prompt_cache_breakpoint: { mode: "explicit" } };
  return null;
}

/** The parameters of a marked request; what its client has set there stays. */
function paramsWith(params: CallBody["params"], { by, key }: CacheMark): Pick<CallBody, "params"> {
  if (by === "cache_control") return {};
  // Without this, the provider writes up to the newest message as well, which nobody reads.
  const options = by === "breakpoint" ? { prompt_cache_options: { mode: "explicit" } } : {};
  return { params: { prompt_cache_key: key, ...options, ...params } };
}

/** A block, and what follows it in its message, with the same characters between them as in a plain text. */
function withNext(block: Block, text: string | undefined): Block[] {
  if (text === undefined || text === "") return [block];
  return [block, { type: "text", text: `${CONTEXT_SEPARATOR}${text}` }];
}

function inSystem(body: CallBody, marker: string, block: Block | null): CallBody {
  if (block === null) return { ...body, system: before(marker, body.system) };
  const { system, prompt, messages, ...rest } = body;
  const others = messages ?? [{ role: "user", content: prompt ?? "" }];
  return { ...rest, messages: [{ role: "system", content: withNext(block, system) }, ...others] };
}

/** The text as a message of its own, before the first that is no system message. */
function inMessages(messages: readonly unknown[], content: string | Block): readonly unknown[] {
  const isSystem = (message: unknown): boolean => isRecord(message) && SYSTEM_ROLES.includes(message["role"]);
  const first = messages.findIndex((message) => !isSystem(message));
  const at = first === -1 ? messages.length : first;
  const added = { role: "user", content: typeof content === "string" ? content : [content] };
  return [...messages.slice(0, at), added, ...messages.slice(at)];
}

function before(marker: string, text: string | undefined): string {
  return text === undefined || text === "" ? marker : `${marker}${CONTEXT_SEPARATOR}${text}`;
}

function withChunk(body: CallBody, marker: string): CallBody {
  const { prompt, messages } = body;
  if (prompt !== undefined) return { ...body, prompt: filled(prompt, marker) };
  return messages === undefined ? body : { ...body, messages: filledFirst(messages, marker) };
}

function filled(prompt: string, marker: string): string {
  return prompt.replaceAll(CHUNK_PLACE, () => marker);
}

/** The prompt of a chunk whose answer is requested once more is the first message. */
function filledFirst(messages: readonly unknown[], marker: string): readonly unknown[] {
  return messages.map((message, index) => {
    if (index > 0 || !isRecord(message) || typeof message["content"] !== "string") return message;
    return { ...message, content: filled(message["content"], marker) };
  });
}

const encoder = new TextEncoder();

/** The bytes of a request, part by part: `json`, the text as JSON without its quotes, in place of every marker. */
export function partsOf(request: string, marker: string, json: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (const [index, between] of request.split(marker).entries()) {
    if (index > 0) parts.push(json);
    parts.push(encoder.encode(between));
  }
  return parts;
}

/** A text as the inside of a JSON string. */
export function jsonInside(text: Uint8Array): Uint8Array {
  const json = encoder.encode(JSON.stringify(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text)));
  return json.subarray(1, -1);
}

/** The code points of a text from `skip` on, `take` of them. */
export function cutText(text: Uint8Array, skip: number, take: number): Uint8Array {
  const from = byteOf(text, 0, skip);
  return text.subarray(from, byteOf(text, from, take));
}

/** The byte behind `chars` code points. */
function byteOf(text: Uint8Array, from: number, chars: number): number {
  let at = from;
  for (let left = chars; at < text.length; at++) {
    const isStart = ((text[at] ?? 0) & 0xc0) !== 0x80;
    if (isStart && left-- === 0) return at;
  }
  return at;
}
