/** Which functions of the gateway's bundle run, by the rooms of the source. Pure: takes the bundle as data. */
import { SourceMap } from "node:module";
import { parseAst } from "vitest/node";
import { z } from "zod";
import type { Bundle } from "../../scripts/local/bundle.ts";

/** Labels of the functions that ran, by their folder; a package's folder is its name and a colon. */
export type Coverage = Map<string, string[]>;

/** The bundle whose functions say that they run, and what they are by their number. */
export type Watched = { bundle: Bundle; places: { room: string; label: string }[] };

/** `takeFunctionsRun` answers the numbers, as JSON, of the functions that ran since it was last called. */
const PRELUDE = `const functionsRun = new Set();
globalThis.takeFunctionsRun = () => { const taken = JSON.stringify([...functionsRun]); functionsRun.clear(); return taken; };
`;

const aFunction = z.looseObject({
  type: z.enum(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]),
  start: z.number(),
  body: z.looseObject({ type: z.string(), start: z.number(), end: z.number() }),
});

/** Adds a call to the beginning of each function. */
export function watched({ code, map }: Bundle): Watched {
  const sources = new SourceMap(JSON.parse(map));
  const lines = lineStarts(code);
  const places: Watched["places"] = [];
  const insertions: { at: number; text: string }[] = [];
  for (const { start, body } of functionsIn(parseAst(code))) {
    const line = lineOf(lines, start);
    const entry = sources.findEntry(line, start - (lines[line] ?? 0));
    if (!("originalSource" in entry)) continue;
    const number = places.push(placeOf(entry.originalSource, entry.originalLine + 1)) - 1;
    if (body.type === "BlockStatement") insertions.push({ at: body.start + 1, text: `functionsRun.add(${number});` });
    else insertions.push({ at: body.start, text: `(functionsRun.add(${number}), ` }, { at: body.end, text: ")" });
  }
  return { bundle: { code: PRELUDE + withInserted(code, insertions), map: "" }, places };
}

/** The functions whose numbers `TAKE` gave, by room. */
export function roomsOf(taken: string, places: Watched["places"]): Coverage {
  const rooms: Coverage = new Map();
  for (const number of z.array(z.number()).parse(JSON.parse(taken))) {
    const place = places[number];
    if (place !== undefined) rooms.set(place.room, [...(rooms.get(place.room) ?? []), place.label]);
  }
  return rooms;
}

function functionsIn(root: unknown): z.infer<typeof aFunction>[] {
  const found: z.infer<typeof aFunction>[] = [];
  const waiting: unknown[] = [root];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== "object" || node === null) continue;
    const parsed = "type" in node && String(node.type).includes("Function") ? aFunction.safeParse(node) : null;
    if (parsed?.data !== undefined) found.push(parsed.data);
    for (const child of Object.values(node)) if (typeof child === "object" && child !== null) waiting.push(child);
  }
  return found;
}

function withInserted(code: string, insertions: readonly { at: number; text: string }[]): string {
  // Of two at one place the later function is the inner one, so what closes it stands first.
  const sorted = insertions
    .map((each, order) => ({ ...each, order }))
    .toSorted((a, b) => a.at - b.at || b.order - a.order);
  const parts: string[] = [];
  let from = 0;
  for (const { at, text } of sorted) {
    parts.push(code.slice(from, at), text);
    from = at;
  }
  return [...parts, code.slice(from)].join("");
}

function placeOf(source: string, line: number): { room: string; label: string } {
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)(.*)$/.exec(source);
  if (dependency !== null) return { room: `${dependency[1]}:`, label: `${dependency[2]}:${line}` };
  const path = source.replace(/^.*?(?=(?:src|durable-objects|stubs)\/)/, "");
  const end = path.lastIndexOf("/");
  return { room: path.slice(0, end), label: `${path.slice(end + 1)}:${line}` };
}

function lineStarts(code: string): number[] {
  const starts = [0];
  for (let at = code.indexOf("\n"); at >= 0; at = code.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** The line of an offset, from 0: the last that starts at or before it. */
function lineOf(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
