/** Where two requests differ, in words that a person can act on. */
import { DIFFERENCE_CHARS, DIFFERENCES_SHOWN_MAX } from "../limits.ts";

/** A place where two values differ; undefined = the value has nothing there. */
type Difference = { path: string; recorded: unknown; requested: unknown };

/** All places, in order; at most `placesMax`. */
export function differences(recorded: unknown, requested: unknown, placesMax = 100): Difference[] {
  const found: Difference[] = [];
  collect({ path: "", recorded, requested }, found, placesMax);
  return found;
}

/** How much differs, in characters: by it, the nearest of several requests is found. */
export function distance(found: readonly Difference[]): number {
  return found.reduce((sum, { recorded, requested }) => {
    const [before, after] = [textOf(recorded), textOf(requested)];
    const { start, end } = common(before, after);
    return sum + 1 + before.length + after.length - 2 * (start + end);
  }, 0);
}

/** One line for each difference, and how many more there are. */
export function differenceLines(found: readonly Difference[]): string[] {
  const lines = found.slice(0, DIFFERENCES_SHOWN_MAX).map(lineOf);
  const left = found.length - lines.length;
  return left === 0 ? lines : [...lines, `and ${left} more`];
}

function collect(at: Difference, found: Difference[], placesMax: number): void {
  const { path, recorded, requested } = at;
  if (found.length >= placesMax || recorded === requested) return;
  if (Array.isArray(recorded) && Array.isArray(requested)) {
    const length = Math.max(recorded.length, requested.length);
    for (let index = 0; index < length; index++) {
      collect({ path: `${path}[${index}]`, recorded: recorded[index], requested: requested[index] }, found, placesMax);
    }
    return;
  }
  if (isObject(recorded) && isObject(requested)) {
    const names = new Set([...Object.keys(recorded), ...Object.keys(requested)]);
    for (const name of names) {
      const inner = path === "" ? name : `${path}.${name}`;
      collect({ path: inner, recorded: own(recorded, name), requested: own(requested, name) }, found, placesMax);
    }
    return;
  }
  if (textOf(recorded) !== textOf(requested)) found.push(at);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function textOf(value: unknown): string {
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

function lineOf({ path, recorded, requested }: Difference): string {
  const place = path.length > DIFFERENCE_CHARS ? `…${path.slice(-DIFFERENCE_CHARS)}` : path;
  const [before, after] = [textOf(recorded), textOf(requested)];
  const { start, end } = common(before, after);
  const shown = (value: unknown, text: string): string =>
    value === undefined ? "nothing" : JSON.stringify(excerpt(text, start, text.length - end));
  return `${place}: recorded ${shown(recorded, before)}, requested ${shown(requested, after)}`;
}

/** How many characters of two texts are equal at their beginnings and their ends, in whole words. */
function common(a: string, b: string): { start: number; end: number } {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  if (start < a.length || start < b.length) while (start > 0 && isWord(a[start - 1])) start -= 1;
  let end = 0;
  while (end < shorter - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  while (end > 0 && isWord(a[a.length - end])) end -= 1;
  return { start, end };
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /[\p{L}\p{N}_]/u.test(character);
}

/** The part that differs, with a little of what surrounds it. */
function excerpt(text: string, from: number, to: number): string {
  const around = Math.floor(DIFFERENCE_CHARS / 4);
  const start = Math.max(0, from - around);
  const end = Math.min(text.length, Math.min(to, from + DIFFERENCE_CHARS) + around);
  return `${start > 0 ? "…" : ""}${text.slice(start, end).toWellFormed()}${end < text.length ? "…" : ""}`;
}
