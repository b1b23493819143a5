/** Which functions of the gateway's bundle run, by the rooms of the source. Pure: takes the bundle as data. */
import { SourceMap } from "node:module";
import { parseAst } from "vitest/node";
import { z } from "zod";
import type { Bundle } from "../../scripts/local/bundle.ts";

/** Labels of the functions that ran, by their folder; a package's folder is its name and a colon. */
export type Coverage = Map<string, string[]>;

/** The bundle whose functions say that they run, and what they are by their number. */
export type Watched = { bundle: Bundle; places: { room: string; label: string }[] };

/**
 * `takeFunctionsRun` answers the numbers, as JSON, of the functions that ran since it was last called. `functionsRun.on` notes one that
 * goes on with what it has waited for.
 */
const PRELUDE = `const functionsRun = new Set();
functionsRun.on = (number, value) => (functionsRun.add(number), value);
globalThis.takeFunctionsRun = () => { const taken = JSON.stringify([...functionsRun]); functionsRun.clear(); return taken; };
`;

/** The room of functions that the source map does not know. */
export const UNPLACED = "unplaced";

const aSpan = z.object({ start: z.number(), end: z.number() });
const aFunction = z.object({ start: z.number(), body: aSpan.extend({ type: z.string() }) });
const aClass = z.object({
  start: z.number(),
  body: z.object({ start: z.number(), body: z.array(z.looseObject({ kind: z.string().optional() })) }),
});
const aLoop = z.object({ await: z.boolean(), body: aSpan });

/** A text that is inserted; of those at one place, what closes stands before what opens. `order`: outer nodes come first. */
type Insertion = { at: number; order: number; closes: boolean; text: string };

/** Notes each function as it begins and as it goes on after `await` or `yield`, and each object of a class without a constructor. */
export function watched({ code, map }: Bundle): Watched {
  const sources = new SourceMap(JSON.parse(map));
  const lines = lineStarts(code);
  const places: Watched["places"] = [];
  const insertions: Insertion[] = [];
  const insert = (at: number, text: string): void =>
    void insertions.push({ at, order: insertions.length, closes: false, text });
  const wrap = ({ start, end }: { start: number; end: number }, before: string, after: string): void => {
    insert(start, before);
    insertions.push({ at: end, order: insertions.length, closes: true, text: after });
  };
  const placed = (start: number): number => {
    const line = lineOf(lines, start);
    const entry = sources.findEntry(line, start - (lines[line] ?? 0));
    const isKnown = "originalSource" in entry;
    const place = isKnown
      ? placeOf(entry.originalSource, entry.originalLine + 1)
      : { room: UNPLACED, label: `bundle:${line + 1}` };
    return places.push(place) - 1;
  };
  for (const { node, owner } of nodesIn(parseAst(code), placed)) {
    if (node.kind === "function") {
      if (node.body.type === "BlockStatement") insert(node.body.start + 1, `functionsRun.add(${owner});`);
      else wrap(node.body, `(functionsRun.add(${owner}), `, ")");
    } else if (node.kind === "class") insert(node.at, `#functionsRun = functionsRun.add(${owner});`);
    else if (node.kind === "wait") wrap(node, `functionsRun.on(${owner}, `, ")");
    else wrap(node, `{ functionsRun.add(${owner}); `, " }");
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

type Watchable =
  | { kind: "function"; body: { type: string; start: number; end: number } }
  | { kind: "class"; at: number }
  | { kind: "wait" | "loop"; start: number; end: number };

/** What is to be watched, outer nodes first, each with the number of its function or class. `placed` gives the numbers. */
function* nodesIn(root: unknown, placed: (start: number) => number): Generator<{ node: Watchable; owner: number }> {
  const waiting: { node: unknown; owner: number | null }[] = [{ node: root, owner: null }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node } = next;
    if (typeof node !== "object" || node === null) continue;
    let { owner } = next;
    const watchable = "type" in node ? watchableOf(node) : null;
    if (watchable?.kind === "function") owner = placed(watchable.start);
    const number = watchable?.kind === "class" ? placed(watchable.start) : owner;
    if (watchable !== null && number !== null) yield { node: watchable, owner: number };
    for (const child of Object.values(node))
      if (typeof child === "object" && child !== null) waiting.push({ node: child, owner });
  }
}

/** A look at the type comes first: a bundle has a million nodes. */
function watchableOf(node: { type: unknown }): (Watchable & { start: number }) | null {
  switch (node.type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression": {
      const { start, body } = aFunction.parse(node);
      return { kind: "function", start, body };
    }
    case "AwaitExpression":
    case "YieldExpression":
      return { kind: "wait", ...aSpan.parse(node) };
    case "ForOfStatement": {
      const { await: isAsync, body } = aLoop.parse(node);
      return isAsync ? { kind: "loop", start: body.start, end: body.end } : null;
    }
    case "ClassDeclaration":
    case "ClassExpression": {
      const { start, body } = aClass.parse(node);
      const isMade = body.body.some(({ kind }) => kind === "constructor");
      return isMade ? null : { kind: "class", start, at: body.start + 1 };
    }
    default:
      return null;
  }
}

function withInserted(code: string, insertions: readonly Insertion[]): string {
  const sorted = insertions.toSorted(
    (a, b) => a.at - b.at || Number(b.closes) - Number(a.closes) || (a.closes ? b.order - a.order : a.order - b.order),
  );
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
