/** The results of groups as files: a line of JSON for each call, or a row of a table. */
import type { Json } from "../api.ts";
import { isRecord, numberOf, objectOf, textOf } from "./line.ts";

/** Columns of the table. */
const COLUMNS = [
  "group",
  "index",
  "id",
  "status",
  "model",
  "prompt_tokens",
  "completion_tokens",
  "cost_usd",
  "latency_ms",
  "queued_ms",
  "attempts",
  "error_code",
  "error_message",
  "result",
] as const;

export function jsonLines(results: readonly Json[]): string {
  return results.map((result) => `${JSON.stringify(result)}\n`).join("");
}

/** The table as RFC 4180 has it. */
export function csv(results: readonly Json[]): string {
  return [COLUMNS.join(","), ...results.map(rowOf)].map((line) => `${line}\r\n`).join("");
}

function rowOf(result: Json): string {
  const [usage, error] = [objectOf(result, "usage"), objectOf(result, "error")];
  const [answer] = [result["result"]];
  const cells: Record<(typeof COLUMNS)[number], unknown> = {
    group: result["group"],
    index: result["index"],
    id: result["id"],
    status: result["status"],
    model: result["model"],
    prompt_tokens: usage["prompt_tokens"],
    completion_tokens: usage["completion_tokens"],
    cost_usd: usage["cost"] === undefined ? undefined : numberOf(usage, "cost"),
    latency_ms: result["latency_ms"],
    queued_ms: result["queued_ms"],
    attempts: result["attempts"],
    error_code: textOf(error, "code"),
    error_message: textOf(error, "message"),
    // What failed has its error; its result would be that error as a text.
    result: isRecord(result["error"]) ? "" : answer,
  };
  return COLUMNS.map((column) => cell(cells[column])).join(",");
}

/** Models and clients write these texts: one that a spreadsheet would compute begins with an apostrophe. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
