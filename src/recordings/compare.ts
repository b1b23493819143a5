/** Two tapes side by side: which requests only one of them has, and which equal ones have other answers. */
import { nearest, type Candidate } from "./nearest.ts";
import { requestText } from "./request.ts";
import { likeness, sketchOf } from "./sketch.ts";
import type { Exchange } from "./types.ts";

/** A request that only one tape has. `number`: its line, from 1; `near`: the most similar request of the other tape. */
export type Lonely = { number: number; said: string; near: ReturnType<typeof nearest> };

export type Comparison = {
  onlyFirst: Lonely[];
  onlySecond: Lonely[];
  /** Lines of equal requests whose answers differ. */
  answers: [number, number][];
};

type Line = { number: number; exchange: Exchange; text: string; name: string };

/** Requests of the other tape that are compared word by word. */
const COMPARED_MAX = 5;
/** Characters of a request that are shown. */
const SAID_CHARS = 100;

/** Compares two tapes. Equal requests are matched in order. */
export function compareTapes(first: readonly Exchange[], second: readonly Exchange[]): Comparison {
  const [a, b] = [first.map(lineOf), second.map(lineOf)];
  const left = new Map<string, Line[]>();
  for (const line of b) left.set(line.name, [...(left.get(line.name) ?? []), line]);
  const alone: Line[] = [];
  const answers: [number, number][] = [];
  for (const line of a) {
    const twin = left.get(line.name)?.shift();
    if (twin === undefined) alone.push(line);
    else if (answerText(line) !== answerText(twin)) answers.push([line.number, twin.number]);
  }
  const others = [...left.values()].flat().toSorted((x, y) => x.number - y.number);
  return { onlyFirst: lonely(alone, b), onlySecond: lonely(others, a), answers };
}

function lineOf(exchange: Exchange, index: number): Line {
  const text = "request" in exchange ? requestText(exchange.request) : exchange.cut.text;
  return { number: index + 1, exchange, text, name: "request" in exchange ? text : exchange.cut.key };
}

function answerText({ exchange: { answer } }: Line): string {
  return `${answer.status} ${answer.chunks.join("")}`;
}

function lonely(lines: readonly Line[], others: readonly Line[]): Lonely[] {
  if (lines.length === 0) return [];
  const sketches = others.map((line) => ({ line, sketch: sketchOf(line.text) }));
  return lines.map(({ number, exchange, text }) => {
    const said = text.slice(0, SAID_CHARS).toWellFormed();
    if (!("request" in exchange)) return { number, said, near: null };
    const sketch = sketchOf(text);
    const likely = sketches
      .map((other) => ({ ...other, like: likeness(other.sketch, sketch) }))
      .toSorted((x, y) => y.like - x.like)
      .slice(0, COMPARED_MAX);
    const candidates = likely.flatMap(({ line }): Candidate[] =>
      "request" in line.exchange ? [{ number: line.number, request: line.exchange.request }] : [],
    );
    return { number, said: lastWords(exchange.request.body) ?? said, near: nearest(exchange.request, candidates) };
  });
}

/** The last message of a conversation; null if it is no plain text. */
function lastWords({ messages }: Readonly<Record<string, unknown>>): string | null {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : null;
  if (typeof last !== "object" || last === null || !("content" in last) || typeof last.content !== "string")
    return null;
  const { content } = last;
  return content.length <= SAID_CHARS ? content : `…${content.slice(-SAID_CHARS).toWellFormed()}`;
}
