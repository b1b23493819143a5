/** Reads the turns of a conversation as all three protocols write them: what was asked, and how often tools have answered. */
import { isRecord } from "../../text/json/record.ts";

/** `result`: what a tool returned to the model; `other`: a system text, a request for a tool, or anything unknown. */
export type Turn = { kind: "user" | "assistant" | "result" | "other"; text: string };

/** The turns of `messages`, or of the items of `input` in Responses. */
export function turnsIn(messages: readonly unknown[]): Turn[] {
  return messages.map(turnOf);
}

function turnOf(message: unknown): Turn {
  if (!isRecord(message)) return { kind: "other", text: "" };
  const { type, role, content } = message;
  if (type === "function_call_output") return { kind: "result", text: contentText(message["output"]) };
  const text = contentText(content);
  if (role === "tool" || (role === "user" && hasToolResult(content))) return { kind: "result", text };
  if (role === "user") return { kind: "user", text };
  return { kind: role === "assistant" && text !== "" ? "assistant" : "other", text };
}

/** A content's text: the content itself, or its text parts and its tools' results joined. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map(partText).join("");
}

function partText(part: unknown): string {
  if (!isRecord(part)) return "";
  if (part["type"] === "tool_result") return contentText(part["content"]);
  return typeof part["text"] === "string" ? part["text"] : "";
}

function hasToolResult(content: unknown): boolean {
  return Array.isArray(content) && content.some((part) => isRecord(part) && part["type"] === "tool_result");
}

/** What the model has to answer: the results of tools that end the conversation, else the last text of the user. */
export function promptOf(turns: readonly Turn[]): string {
  const resultsFrom = turns.findLastIndex(({ kind }) => kind !== "result") + 1;
  if (resultsFrom < turns.length) return textsOf(turns.slice(resultsFrom)).join("\n");
  return turns.findLast(({ kind }) => kind === "user")?.text ?? "";
}

export function textsOf(turns: readonly Turn[]): string[] {
  return turns.map(({ text }) => text);
}

/** How often tools have answered since the last text of the user; results that follow each other are one answer. */
export function toolRounds(turns: readonly Turn[]): number {
  const asked = turns.slice(turns.findLastIndex(({ kind }) => kind === "user") + 1);
  return asked.filter(({ kind }, at) => kind === "result" && asked[at - 1]?.kind !== "result").length;
}

/** Texts that the model has already written in this conversation. */
export function answersIn(turns: readonly Turn[]): number {
  return turns.filter(({ kind }) => kind === "assistant").length;
}
