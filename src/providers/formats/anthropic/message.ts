/**
 * An Anthropic message in the chat form of an assistant's message. `tool_use` becomes `tool_calls`, whose arguments are the bytes of
 * the input; thoughts become `reasoning`, and their blocks, which are signed, stay as they came in `thinking_blocks`; citations
 * become `annotations`. What the chat form cannot say is in `content_blocks`, the whole content as it came.
 */
import type { AnswerParts, Included } from "../../../call.ts";
import { valueEnd } from "../../../text/json/grammar.ts";
import { isRecord } from "../../../text/json/record.ts";
import { firstElement, kindAt, member, nextElement, readObject, scanObject } from "../../../text/json/scan.ts";
import { oneLine } from "../response/message.ts";

type Block = Record<string, unknown>;

/** Blocks that the chat form can say, or that stay as they came beside it. */
const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/** The message as read: its blocks, and its text, which is that of the text blocks. */
export type MessageRead = { blocks: readonly Block[]; text: string; stopReason: unknown; stopDetails: unknown };

/** What the message has beside its text; undefined = nothing, unless the message is included. */
export function messageParts(body: string, read: MessageRead, include: readonly Included[]): AnswerParts | undefined {
  const hasMore =
    read.stopReason === "refusal" || read.blocks.some((block) => block["type"] !== "text" || isCited(block));
  if (!hasMore && !include.includes("message")) return undefined;
  return { message: chatForm(read, writtenContent(body, read.blocks)) };
}

type WrittenContent = { whole: string; blocks: readonly string[]; inputs: readonly (string | null)[] };

function chatForm({ blocks, text, stopReason, stopDetails }: MessageRead, written: WrittenContent): string {
  const calls = blocks.flatMap((block, at) =>
    block["type"] === "tool_use" ? [callJson(block, written.inputs[at])] : [],
  );
  const isBare = text === "" && blocks.some(({ type }) => type !== "text");
  const thoughts = blocks.flatMap(({ type, thinking }) =>
    type === "thinking" && typeof thinking === "string" && thinking !== "" ? [thinking] : [],
  );
  const kept = written.blocks.filter((_, at) => THOUGHTS.has(blocks[at]?.["type"]));
  const annotations = annotationsOf(blocks);
  const hasOther = blocks.some(({ type }) => type !== "text" && type !== "tool_use" && !THOUGHTS.has(type));
  const fields = [
    '"role":"assistant"',
    `"content":${isBare ? "null" : JSON.stringify(text)}`,
    ...(stopReason === "refusal" ? [`"refusal":${JSON.stringify(refusalOf(text, stopDetails))}`] : []),
    ...(thoughts.length === 0 ? [] : [`"reasoning":${JSON.stringify(thoughts.join("\n\n"))}`]),
    ...(kept.length === 0 ? [] : [`"thinking_blocks":[${kept.join(",")}]`]),
    ...(calls.length === 0 ? [] : [`"tool_calls":[${calls.join(",")}]`]),
    ...(annotations.length === 0 ? [] : [`"annotations":${JSON.stringify(annotations)}`]),
    ...(hasOther || annotations.length > 0 ? [`"content_blocks":${written.whole}`] : []),
  ];
  return `{${fields.join(",")}}`;
}

function refusalOf(text: string, details: unknown): string | null {
  if (text !== "") return text;
  const explanation = isRecord(details) ? details["explanation"] : null;
  return typeof explanation === "string" ? explanation : null;
}

function callJson({ id, name, input }: Block, written: string | null | undefined): string {
  // A call that its completion cap has cut has a text in place of an object: as much of its JSON as there is.
  const args = typeof input === "string" ? input : (written ?? JSON.stringify(input ?? {}));
  return JSON.stringify({ id, type: "function", function: { name, arguments: args } });
}

function isCited({ citations }: Block): boolean {
  return Array.isArray(citations) && citations.length > 0;
}

/** The citations, each with the part of the text that it supports: from its first character to behind its last, in code points. */
function annotationsOf(blocks: readonly Block[]): object[] {
  const annotations: object[] = [];
  if (!blocks.some(isCited)) return annotations;
  let start_index = 0;
  for (const { type, text, citations } of blocks) {
    if (type !== "text" || typeof text !== "string") continue;
    const end_index = start_index + [...text].length;
    for (const citation of Array.isArray(citations) ? citations : []) {
      if (isRecord(citation)) annotations.push(annotationOf(citation, { start_index, end_index }));
    }
    start_index = end_index;
  }
  return annotations;
}

function annotationOf(citation: Block, range: { start_index: number; end_index: number }): object {
  const { type, url, title, cited_text: content } = citation;
  if (typeof url !== "string") return { type, ...range, citation };
  return { type: "url_citation", url_citation: { url, title, ...range, ...(content != null && { content }) } };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** The content as it was written: whole, by block, and the inputs of calls. */
function writtenContent(body: string, read: readonly Block[]): WrittenContent {
  const bytes = encoder.encode(body);
  const scan = scanObject(bytes);
  const content = scan.ok ? member(scan.object, "content") : null;
  const written = (start: number, end: number): string => oneLine(decoder.decode(bytes.subarray(start, end)));
  if (content?.kind !== "array") {
    const blocks = read.map((block) => JSON.stringify(block));
    return { whole: `[${blocks.join(",")}]`, blocks, inputs: [] };
  }
  const blocks: string[] = [];
  const inputs: (string | null)[] = [];
  for (let at = firstElement(bytes, content.start); at !== -1;) {
    const end = valueEnd(bytes, at);
    const object = kindAt(bytes, at) === "object" ? readObject(bytes, at) : null;
    const input = object === null ? null : member(object, "input");
    blocks.push(written(at, end));
    inputs.push(input === null ? null : written(input.start, input.end));
    at = nextElement(bytes, end);
  }
  return { whole: written(content.start, content.end), blocks, inputs };
}
