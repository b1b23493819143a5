/** Requests as Python's programs send them: their JSON in ASCII with spaces, and no header but those given. */
import { request } from "node:http";
import { text } from "node:stream/consumers";

/** What came back; `json` is undefined if the text is not JSON. */
export type PythonAnswer = { status: number; text: string; json: unknown };

/** Posts a body with exactly these headers, besides its host and length. */
export async function postExactly(url: string, headers: Record<string, string>, body: string): Promise<PythonAnswer> {
  const bytes = Buffer.from(body);
  const asked = request(url, { method: "POST", agent: false, headers: { ...headers, "content-length": bytes.length } });
  const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    asked.once("error", reject);
    asked.once("response", (response) => {
      text(response).then((read) => resolve({ status: response.statusCode ?? 0, text: read }), reject);
    });
    asked.end(bytes);
  });
  return { ...answer, json: jsonOf(answer.text) };
}

function jsonOf(read: string): unknown {
  try {
    return JSON.parse(read);
  } catch {
    return undefined;
  }
}

/** A value as `json.dumps` writes it: a space after each colon and comma, nothing but ASCII. */
export function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, field]) => `${pythonJson(name)}: ${pythonJson(field)}`);
    return `{${fields.join(", ")}}`;
  }
  const written = JSON.stringify(value);
  return written.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A value as Python's `str` shows it, as far as these programs show any. */
export function pythonText(value: unknown): string {
  return value === undefined || value === null ? "None" : String(value);
}
