/** The run that this file has saved in itself; null = the page is served by a gateway and follows a run there. */
import type { Json } from "./api.ts";
import { isRecord, parseLine, type LogLine } from "./model/line.ts";

export type SavedRun = { id: string; savedAtMs: number; document: Json; lines: LogLine[]; graphs: Json };

export function savedRun(): SavedRun | null {
  const text = document.getElementById("saved-run")?.textContent;
  if (text == null) return null;
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) return null;
  const { id, saved_at, document: run, lines, graphs } = value;
  if (typeof id !== "string" || typeof saved_at !== "string" || !Array.isArray(lines)) return null;
  const parsed = lines.flatMap((line) => {
    const read = typeof line === "string" ? parseLine(line) : null;
    return read === null ? [] : [read];
  });
  return {
    id,
    savedAtMs: Date.parse(saved_at),
    document: isRecord(run) ? run : {},
    lines: parsed,
    graphs: isRecord(graphs) ? graphs : {},
  };
}
