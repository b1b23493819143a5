/**
 * The JSON text of an argument that came over a binding. Code that nobody trusts may send whatever structured clone carries: stubs and
 * streams, circles, one text that is referred to a million times, a list of a billion holes. So the argument is measured
 * before it is written: the walk ends at the bound of the text, and each step of it is at least one byte of that text.
 */
import { bodyTooLarge } from "../contract/body.ts";
import { invalid, type Parsed } from "../contract/errors.ts";
import { JSON_BODY_DEPTH_MAX } from "../limits.ts";

/** The text of a value that JSON has, of at most `bytesMax` characters of content; else why the value is refused. */
export function jsonTextOf(value: unknown, bytesMax: number): Parsed<string> {
  const measured = measure(value, { charsLeft: bytesMax, depthLeft: JSON_BODY_DEPTH_MAX });
  if (typeof measured === "number") return { ok: true, value: JSON.stringify(value) };
  if (measured === "large") return { ok: false, reason: bodyTooLarge(bytesMax) };
  return measured === "deep" ? invalid(null, TOO_DEEP) : invalid(null, NOT_PLAIN);
}

const TOO_DEEP = `is nested deeper than ${JSON_BODY_DEPTH_MAX} levels, or refers to itself`;
const NOT_PLAIN =
  "has a value that JSON has not; expected texts, finite numbers, booleans, null, lists and plain objects of these";

type Room = { charsLeft: number; depthLeft: number };
type Fault = "large" | "deep" | "not-plain";

/** How many characters are left of the room once the value is written; its text is no shorter than what it takes here. */
function measure(value: unknown, room: Room): number | Fault {
  if (typeof value === "string") return left(room.charsLeft - value.length - 2);
  if (value === null || typeof value === "boolean") return left(room.charsLeft - 1);
  if (typeof value === "number") return Number.isFinite(value) ? left(room.charsLeft - 1) : "not-plain";
  if (typeof value !== "object") return "not-plain";
  if (room.depthLeft === 0) return "deep";
  const inside = { charsLeft: room.charsLeft - 1, depthLeft: room.depthLeft - 1 };
  if (Array.isArray(value)) return measureList(value, inside);
  return isPlain(value) ? measureFields(value, inside) : "not-plain";
}

function measureList(list: readonly unknown[], { charsLeft, depthLeft }: Room): number | Fault {
  // A list may announce more elements than it has: its holes are written, too.
  if (list.length > charsLeft) return "large";
  let chars = charsLeft;
  for (const element of list) {
    const rest = measure(element, { charsLeft: chars - 1, depthLeft });
    if (typeof rest !== "number") return rest;
    chars = rest;
  }
  return left(chars);
}

function measureFields(fields: object, { charsLeft, depthLeft }: Room): number | Fault {
  let chars = charsLeft;
  for (const [name, field] of Object.entries(fields)) {
    // JSON leaves such a field out.
    if (field === undefined) continue;
    const rest = measure(field, { charsLeft: chars - name.length - 3, depthLeft });
    if (typeof rest !== "number") return rest;
    chars = rest;
  }
  return left(chars);
}

function left(chars: number): number | Fault {
  return chars < 0 ? "large" : chars;
}

/** Whether nothing but its own fields decides what JSON writes of an object. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
