/** Edits members of a JSON text: every byte outside an edit stays as it was. */
import { member, readObject, type JsonMember, type JsonObject } from "./scan.ts";

/**
 * `json` is the text of the new value at the path; null removes the member. A path leads through objects: missing ones are
 * created, and any other value on the path is replaced by an object.
 */
export type JsonEdit = { path: readonly [string, ...string[]]; json: string | null };

/** The bytes from `start` to `end` are replaced by a text. */
export type Patch = { start: number; end: number; text: string };

const encoder = new TextEncoder();

/**
 * Applies edits to a validated text, to the object in it that is `object`. Of several edits of one path the last wins; no path
 * may continue another one. Of repeated members the last is set, which is the one that counts, and all are removed. An
 * inner object with more than `JSON_MEMBERS_MAX` members is not edited. Returns the same bytes if nothing changes.
 */
export function editJson(bytes: Uint8Array, object: JsonObject, edits: readonly JsonEdit[]): Uint8Array {
  return applyPatches(bytes, patchesOf(bytes, object, edits));
}

/** Applies patches that are in order and do not overlap; insertions at one index keep their order. */
export function applyPatches(bytes: Uint8Array, patches: readonly Patch[]): Uint8Array {
  if (patches.length === 0) return bytes;
  // Room for three bytes a character, so that each text is encoded in its final position.
  let size = bytes.length;
  for (const { start, end, text } of patches) size += text.length * 3 - (end - start);
  const edited = new Uint8Array(size);
  let read = 0;
  let written = 0;
  for (const { start, end, text } of patches) {
    edited.set(bytes.subarray(read, start), written);
    written = writeText(text, edited, written + start - read);
    read = end;
  }
  edited.set(bytes.subarray(read), written);
  return edited.subarray(0, written + bytes.length - read);
}

/** Up to so many characters are written one by one: an encoder, and its view of the bytes, cost more. */
const SHORT_CHARS = 64;

/** Writes a text, and returns where it ends. */
function writeText(text: string, bytes: Uint8Array, start: number): number {
  let isAscii = text.length <= SHORT_CHARS;
  for (let at = 0; at < text.length && isAscii; at++) {
    const code = text.charCodeAt(at);
    isAscii = code < 0x80;
    bytes[start + at] = code;
  }
  return start + (isAscii ? text.length : encoder.encodeInto(text, bytes.subarray(start)).written);
}

/** The change of one member of an object: a new value, its removal (null), or edits inside it. */
type Change = { json: string | null } | { inside: JsonEdit[] };

function patchesOf(bytes: Uint8Array, object: JsonObject, edits: readonly JsonEdit[]): Patch[] {
  const changes = changesOf(edits);
  const removed: string[] = [];
  const patches: Patch[] = [];
  const added: string[] = [];
  for (const [name, change] of changes) {
    const found = member(object, name);
    const json = "inside" in change ? nestedPatches(bytes, found, change.inside, patches) : change.json;
    if (json === undefined) continue;
    if (json === null) removed.push(name);
    else if (found === null) added.push(`${JSON.stringify(name)}:${json}`);
    else patches.push({ start: found.start, end: found.end, text: json });
  }
  if (removed.length > 0) patches.push(...removals(object.members, removed));
  patches.sort((a, b) => a.start - b.start);
  if (added.length > 0) {
    // Behind the last member, even if that one is removed: its removal ends there.
    const end = object.members.at(-1)?.end ?? object.start + 1;
    const isFirst = object.members.every(({ name }) => removed.includes(name));
    patches.push({ start: end, end, text: `${isFirst ? "" : ","}${added.join(",")}` });
  }
  return patches;
}

function changesOf(edits: readonly JsonEdit[]): Map<string, Change> {
  const changes = new Map<string, Change>();
  for (const { path, json } of edits) {
    const [name, next] = path;
    if (next === undefined) {
      changes.set(name, { json });
      continue;
    }
    const earlier = changes.get(name);
    const inner: JsonEdit = { path: [next, ...path.slice(2)], json };
    if (earlier !== undefined && "inside" in earlier) earlier.inside.push(inner);
    else changes.set(name, { inside: [inner] });
  }
  return changes;
}

/** Adds the patches of edits inside a member; if it is missing or not an object, returns its new text instead. */
function nestedPatches(
  bytes: Uint8Array,
  found: JsonMember | null,
  edits: readonly JsonEdit[],
  patches: Patch[],
): string | undefined {
  if (found?.kind === "object") {
    const object = readObject(bytes, found.start);
    if (object !== null) patches.push(...patchesOf(bytes, object, edits));
    return undefined;
  }
  const sets = edits.filter(({ json }) => json !== null);
  return sets.length === 0 ? undefined : decoder.decode(editJson(EMPTY_OBJECT, EMPTY, sets));
}

const decoder = new TextDecoder();
const EMPTY_OBJECT = encoder.encode("{}");
const EMPTY: JsonObject = { start: 0, end: 2, members: [], duplicate: null };

/** Each removal includes one comma: the one before, or the one behind if no member before it is kept. */
function removals(members: readonly JsonMember[], removed: readonly string[]): Patch[] {
  const patches: Patch[] = [];
  let keptBefore = false;
  for (const [at, { name, keyStart, end }] of members.entries()) {
    if (!removed.includes(name)) keptBefore = true;
    else if (keptBefore) patches.push({ start: members[at - 1]?.end ?? keyStart, end, text: "" });
    else patches.push({ start: keyStart, end: members[at + 1]?.keyStart ?? end, text: "" });
  }
  return patches;
}
