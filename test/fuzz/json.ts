/** Bodies of JSON: honest ones, bent. */
import { arraysIn, memberOf, objectsIn, raw, treeOf, write, type Tree } from "../../bench/adversary/json-text.ts";
import type { Random } from "../../bench/adversary/random.ts";
import { hostileSpelling, NAMES } from "./texts.ts";

const BENDS_MAX = 3;

/** The text of a value, after up to three changes of its members, and some of the text itself. */
export function bentJson(value: unknown, random: Random): string {
  if (random.chance(0.05)) return hostileSpelling(random);
  const tree = treeOf(value);
  if (random.chance(0.65)) for (let left = random.integer(1, BENDS_MAX); left > 0; left -= 1) bend(tree, random);
  const text = write(tree);
  return random.chance(0.15) ? bentText(text, random) : text;
}

type Bend = "replace" | "double" | "add" | "remove" | "repeat" | "swap";
const BENDS: readonly (readonly [Bend, number])[] = [
  ["replace", 45],
  ["double", 15],
  ["add", 15],
  ["remove", 10],
  ["repeat", 10],
  ["swap", 5],
];

function bend(tree: Tree, random: Random): void {
  const objects = objectsIn(tree);
  if (objects.length === 0) return;
  const { members } = random.pick(objects);
  const kind = random.weighted(BENDS);
  if (kind === "add" || members.length === 0) {
    const member = memberOf(random.pick(NAMES), null);
    member.value = raw(hostileSpelling(random));
    members.splice(random.integer(0, members.length), 0, member);
    return;
  }
  const at = random.integer(0, members.length - 1);
  const member = random.pick(members.slice(at, at + 1));
  if (kind === "replace") member.value = raw(hostileSpelling(random));
  else if (kind === "remove") members.splice(at, 1);
  else if (kind === "double") {
    const value = random.chance(0.5) ? member.value : raw(hostileSpelling(random));
    members.push({ key: random.chance(0.5) ? member.key : escaped(member.key), value });
  } else if (kind === "swap") {
    const other = random.pick(members);
    [member.value, other.value] = [other.value, member.value];
  } else repeat(tree, random);
}

/** Characters that a list grows by: above the bounds of most bodies, and drawn in no time. */
const REPEATED_CHARS_MAX = 2_000_000;

/** Makes a list of the tree many times as long. */
function repeat(tree: Tree, random: Random): void {
  const arrays = arraysIn(tree);
  if (arrays.length === 0) return;
  const { items } = random.pick(arrays);
  const [first = raw("1")] = items;
  const text = write(first);
  const copiesMax = Math.min(1_500, Math.max(1, Math.floor(REPEATED_CHARS_MAX / (text.length + 1))));
  for (let left = random.integer(1, copiesMax); left > 0; left -= 1) items.push(raw(text));
}

/** The key with its first letter as an escape. */
function escaped(key: string): string {
  const letter = key.charCodeAt(1).toString(16).padStart(4, "0");
  return key.length > 2 && key[1] !== "\\" ? `"\\u${letter}${key.slice(2)}` : key;
}

function bentText(text: string, random: Random): string {
  const at = random.integer(0, text.length);
  const kind = random.weighted([
    ["cut", 30],
    ["insert", 40],
    ["trail", 15],
    ["quotes", 5],
    ["twice", 10],
  ]);
  if (kind === "cut") return text.slice(0, at);
  if (kind === "insert") return text.slice(0, at) + random.pick(INSERTS) + text.slice(at);
  if (kind === "trail") return text + random.pick(INSERTS);
  return kind === "quotes" ? text.replaceAll('"', "'") : text + text;
}

const INSERTS = [
  "\0",
  "\r\n",
  "\ufeff",
  "\\",
  '"',
  "{",
  "]",
  ",",
  "/*",
  "//\n",
  "\u2028",
  "\\u0000",
  "\t",
  ":",
] as const;
