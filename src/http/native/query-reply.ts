/** The answer to a single call that completed. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { SlotView } from "../../objects/methods/groups.ts";
import type { QueryReply } from "../../contract/query.ts";
import { jsonOfAnswer } from "../../text/schema/answer.ts";
import { courseFields } from "../replies/course.ts";
import { usageOf } from "../replies/usage.ts";
import type { SingleCallEnd } from "../../executors/single-call.ts";
import type { AnswerParts } from "../../call.ts";
import { withParts } from "../replies/parts.ts";

/** Whether the client wants the text and nothing else. */
export function wantsText(c: Context<AppEnv>): boolean {
  return (c.req.header("accept") ?? "").startsWith("text/plain");
}

/** What a call was answered; `upstream`: by whom, if it asked for a route. */
export type AnswerText = {
  text: string;
  model: string;
  /** What the answer has beside its text; absent = nothing. */
  parts?: AnswerParts | undefined;
  finishReason: string | null;
  upstream?: string | undefined;
  /** Whether the text was checked against a schema: then it is shown as JSON, too. */
  isJson?: boolean | undefined;
  /** Set if the call went to several models, or was made several times. */
  course?: SlotView["course"] | undefined;
  /** Set if it is a recorded answer. */
  replayed?: true | undefined;
};

/** The answer to a call that completed, as JSON text. */
export function queryReply(
  id: string,
  end: Omit<SingleCallEnd, "outcome" | "remainingNanoUsd">,
  { text, parts, model, finishReason, upstream, isJson, course, replayed }: AnswerText,
): string {
  const reply: QueryReply = {
    id,
    text,
    result: text,
    response: text,
    model,
    usage: usageOf(end),
    attempts: end.attempts,
    latency_ms: end.latencyMs,
    queued_ms: end.queuedMs,
    parallel_group_id: end.parallelGroupId,
    finish_reason: finishReason,
    json: isJson === true ? jsonOfAnswer(text) : undefined,
    capped_by: end.cappedBy,
    upstream,
    ...courseFields({ course }),
    replayed,
  };
  return withParts(reply, parts);
}
