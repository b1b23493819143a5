/** Reads a tool's answer: the value that the run's code gets. */
import { nestsDeeperThan } from "../contract/text.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";

export type ToolReply = { ok: true; result: unknown } | { ok: false; problem: string };

/**
 * Reads the text of a successful answer. A text content type is returned as it is. Of JSON, the field `result` is the
 * result, or all of it if that field is missing. A body without either content type that is not JSON is text, too.
 */
export function readReply(text: string, contentType: string | null): ToolReply {
  const type = (contentType ?? "").split(";", 1).join("").trim().toLowerCase();
  if (type.startsWith("text/")) return { ok: true, result: text };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    if (type !== "application/json" && !type.endsWith("+json")) return { ok: true, result: text };
    return { ok: false, problem: "answered with a JSON content type and a body that is not JSON" };
  }
  const result = typeof json === "object" && json !== null && "result" in json ? json.result : json;
  if (!nestsDeeperThan(result, JSON_DEPTH_MAX)) return { ok: true, result };
  return { ok: false, problem: `answered with JSON of more than ${JSON_DEPTH_MAX} levels` };
}
