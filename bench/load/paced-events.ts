/** The events of a paced stream. Each carries the time at which it was written, on the clock that all processes share. */
import { MODEL } from "./prompts.ts";

/** Events with content in one paced stream. */
export const PACED_EVENTS = 200;

const HEAD = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_763_712_000, model: MODEL };
const event = (fields: Record<string, unknown>) => `data: ${JSON.stringify({ ...HEAD, ...fields })}\n\n`;

/** An event of content that is written now. */
export function pacedEvent(): string {
  const content = `<${process.hrtime.bigint()}> and some more words`;
  return event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
}

/** What ends a paced stream, with its usage if that was requested. */
export function pacedEnd(hasUsage: boolean): string {
  const usage = { prompt_tokens: 12, completion_tokens: PACED_EVENTS, total_tokens: 12 + PACED_EVENTS };
  const end = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  return `${end}${hasUsage ? event({ choices: [], usage }) : ""}data: [DONE]\n\n`;
}

/** The times in the content of events, ns, in their order. A gateway that writes events anew may escape the brackets. */
export function writtenAtNs(text: string): bigint[] {
  return [...text.matchAll(/(?:<|\\u003c)(\d+)(?:>|\\u003e)/g)].map(([, ns = "0"]) => BigInt(ns));
}
