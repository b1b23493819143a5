/** The request of a call that refers to a context: it is built with a marker where the text goes, and sent with the text. */
import type { CallBody } from "../../call.ts";
import { isRecord } from "../../json/record.ts";
import { CHUNK_PLACE, CONTEXT_SEPARATOR } from "../../limits.ts";

/** The body with the marker where its context stands, and without the context. */
export function bodyWithMarker({ context, ...body }: CallBody, marker: string): CallBody {
  if (context === undefined) return body;
  const { prompt, messages, system } = body;
  if (context.place === "system") return { ...body, system: before(marker, system) };
  if (context.place === "template") {
    if (prompt !== undefined) return { ...body, prompt: filled(prompt, marker) };
    return messages === undefined ? body : { ...body, messages: filledFirst(messages, marker) };
  }
  if (messages === undefined) return { ...body, prompt: before(marker, prompt) };
  const isSystem = (message: unknown): boolean => isRecord(message) && SYSTEM_ROLES.includes(message["role"]);
  const first = messages.findIndex((message) => !isSystem(message));
  const at = first === -1 ? messages.length : first;
  return { ...body, messages: [...messages.slice(0, at), { role: "user", content: marker }, ...messages.slice(at)] };
}

const SYSTEM_ROLES: readonly unknown[] = ["system", "developer"];

function before(marker: string, text: string | undefined): string {
  return text === undefined || text === "" ? marker : `${marker}${CONTEXT_SEPARATOR}${text}`;
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
