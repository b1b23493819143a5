/** What a request says, for a model that believes nothing else: its instructions, its texts, its files, the form of its answer. */
import type { Chat } from "../completion.ts";

/** A file that was sent with its text. */
export type SentFile = { path: string; text: string };

export type Request = {
  /** All messages, the system's first, as one text. */
  text: string;
  /** The last message. */
  prompt: string;
  files: SentFile[];
  /** The JSON Schema of the answer; null = free text. */
  schema: Record<string, unknown> | null;
};

/** Files as programs send them: `<file path="auth.py">`, the text, `</file>`. */
const FILE = /<file path="([^"]+)">\n([\s\S]*?)\n?<\/file>/g;

export function requestOf(chat: Pick<Chat, "body" | "prompt">): Request {
  const text = chat.body.messages.map(({ content }) => textOf(content)).join("\n\n");
  const files = [...text.matchAll(FILE)].map(([, path = "", body = ""]) => ({ path, text: `${body}\n` }));
  return { text, prompt: chat.prompt, files: files.filter(({ text }) => text.trim() !== ""), schema: schemaOf(chat) };
}

/** Whether the answer is to be an object with these fields. */
export function asksFor(request: Request, ...fields: string[]): boolean {
  const properties = recordOf(request.schema?.["properties"]);
  return properties !== null && fields.every((field) => field in properties);
}

/** The text between a heading, such as `# Goal`, and the next heading; null without that heading. */
export function sectionOf(text: string, heading: string): string | null {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => new RegExp(`^#+ ${heading}\\b`, "i").test(line));
  if (at < 0) return null;
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => line.startsWith("# "));
  return (end < 0 ? rest : rest.slice(0, end)).join("\n").trim();
}

function schemaOf({ body }: Pick<Chat, "body">): Record<string, unknown> | null {
  return recordOf(recordOf(recordOf(body["response_format"])?.["json_schema"])?.["schema"]);
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part) => String(recordOf(part)?.["text"] ?? "")).join("\n") : "";
}

function recordOf(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : null;
}
