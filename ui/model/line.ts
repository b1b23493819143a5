/** Lines of a run's log as they arrive. Their texts are hostile: they are shown as text and read as nothing else. */

/** A line; fields that a line of its type should have are read with `numberOf` and `textOf`. */
export type LogLine = {
  seq: number;
  atMs: number;
  type: string;
  group: string | null;
  fields: Readonly<Record<string, unknown>>;
};

/** Reads one line; null if it is not a line of a log. */
export function parseLine(json: string): LogLine | null {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return null;
  }
  if (!isRecord(value)) return null;
  const { seq, ts, event_type: type, parallel_group_id: group } = value;
  if (typeof seq !== "number" || typeof ts !== "string" || typeof type !== "string") return null;
  const atMs = Date.parse(ts);
  return Number.isNaN(atMs)
    ? null
    : { seq, atMs, type, group: typeof group === "string" ? group : null, fields: value };
}

/** The number in a field; 0 if there is none. */
export function numberOf(fields: Readonly<Record<string, unknown>>, name: string): number {
  const value = fields[name];
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** The text in a field; null if there is none. */
export function textOf(fields: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = fields[name];
  return typeof value === "string" ? value : null;
}

/** The object in a field; an empty one if there is none. */
export function objectOf(fields: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = fields[name];
  return isRecord(value) ? value : {};
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
