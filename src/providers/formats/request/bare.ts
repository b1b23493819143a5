/**
 * Requests whose prompt is one message of plain text, and nothing else: around it, an upstream puts the same template each time.
 * So the bill of one shows the most that the template of another can have, whatever their texts are.
 */
import type { Endpoint } from "../../../call.ts";
import { LARGE_BODY_BYTES_MIN } from "../../../limits.ts";
import { spells } from "../../../text/json/key.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  readObject,
  type JsonObject,
  type Kind,
} from "../../../text/json/scan.ts";

/**
 * Fields that neither are read as text nor choose a template, with the kinds of their values: a value of another kind, and each
 * field that is not here, may change what is read.
 */
const QUIET_FIELDS: ReadonlyMap<string, Kind> = new Map([
  ["model", "text"],
  ["max_tokens", "number"],
  ["max_completion_tokens", "number"],
  ["temperature", "number"],
  ["top_p", "number"],
  ["seed", "number"],
  ["presence_penalty", "number"],
  ["frequency_penalty", "number"],
  ["stream", "boolean"],
]);

/** Options of a stream say what it sends; others in them are refused where a limit binds. */
const STREAM_OPTIONS = "stream_options";

const USER = '"user"';

/** The bytes of the text of such a request, as it is sent; null = it is none, or so long that its template is a small part of it. */
export function bareTextBytes(endpoint: Endpoint, bytes: Uint8Array, { members }: JsonObject): number | null {
  if ((endpoint !== "chat" && endpoint !== "messages") || bytes.length >= LARGE_BODY_BYTES_MIN) return null;
  let textBytes: number | null = null;
  for (const { name, kind, start } of members) {
    if (name === STREAM_OPTIONS) continue;
    if (name === "messages") textBytes = kind === "array" ? onlyTextBytes(bytes, start) : null;
    else if (!QUIET_FIELDS.has(name) || (kind !== "null" && kind !== QUIET_FIELDS.get(name))) return null;
  }
  return textBytes;
}

/** The bytes of the text of a list with one message, which has a user's text; null = it has another form. */
function onlyTextBytes(bytes: Uint8Array, list: number): number | null {
  const first = firstElement(bytes, list);
  if (first === -1 || kindAt(bytes, first) !== "object") return null;
  const message = readObject(bytes, first);
  if (message?.members.length !== 2 || nextElement(bytes, message.end) !== -1) return null;
  const role = member(message, "role");
  const content = member(message, "content");
  if (role === null || content?.kind !== "text" || !spells(bytes, role.start, role.end, USER)) return null;
  const quotes = 2;
  return content.end - content.start - quotes;
}
