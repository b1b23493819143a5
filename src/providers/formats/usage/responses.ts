/** Reads the usage of a Responses answer, under the names of a chat completion, so that the same checks apply. */
import type { Usage } from "../../../call.ts";
import { isRecord } from "../../../text/json/record.ts";
import { readUsage } from "./usage.ts";

/** The `usage` object of a response; null if it is missing or any figure in it is impossible. */
export function readResponsesUsage(usage: unknown): Usage | null {
  if (!isRecord(usage)) return null;
  return readUsage({
    ...usage,
    prompt_tokens: usage["input_tokens"],
    completion_tokens: usage["output_tokens"],
    prompt_tokens_details: usage["input_tokens_details"],
    completion_tokens_details: usage["output_tokens_details"],
  });
}
