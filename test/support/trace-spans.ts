/** Reads a trace as viewers do: spans of one process, category and id form a track, on which an end closes the last begun. */
import { z } from "zod";

const event = z.strictObject({
  ph: z.enum(["b", "e", "i", "C", "M"]),
  name: z.string().min(1),
  pid: z.int().min(1),
  tid: z.int(),
  ts: z.number().min(0),
  cat: z.string().optional(),
  id: z.string().min(1).optional(),
  s: z.literal("p").optional(),
  args: z.record(z.string(), z.unknown()).optional(),
});
export type ReadEvent = z.infer<typeof event>;

export const traceFile = z.strictObject({ displayTimeUnit: z.literal("ms"), traceEvents: z.array(event) });

/** A span with its depth on its track: 0 = outermost. `endMs` null = it has not ended. */
export type Span = {
  cat: string;
  name: string;
  pid: number;
  depth: number;
  startMs: number;
  endMs: number | null;
  args: Record<string, unknown>;
};

/** The spans of a trace. Throws if an end has no beginning, has another name, or comes before what it encloses. */
export function spansOf(events: readonly ReadEvent[]): Span[] {
  const spans: Span[] = [];
  const tracks = new Map<string, Span[]>();
  const inOrder = events.filter(({ ph }) => ph === "b" || ph === "e").toSorted((a, b) => a.ts - b.ts);
  for (const { ph, name, pid, ts, cat = "", id = "", args = {} } of inOrder) {
    const key = `${pid} ${cat} ${id}`;
    const open = tracks.get(key) ?? [];
    tracks.set(key, open);
    if (ph === "b") {
      const span = { cat, name, pid, depth: open.length, startMs: ts / 1_000, endMs: null, args };
      open.push(span);
      spans.push(span);
      continue;
    }
    const last = open.pop();
    if (last?.name !== name) throw new Error(`the end of "${name}" on ${key} closes "${last?.name}"`);
    last.endMs = ts / 1_000;
    last.args = { ...last.args, ...args };
  }
  return spans;
}

/** The last value of a counter. */
export function lastOf(events: readonly ReadEvent[], counter: string): Record<string, unknown> | undefined {
  return events.findLast(({ ph, name }) => ph === "C" && name === counter)?.args;
}
