/**
 * Names that `params` of `/query` and `/batch` must not hold, each with the reason: they have a field of their own, or the
 * gateway could not read the answer.
 */
export const OWN_PARAMS: ReadonlyMap<string, string> = new Map([
  ["model", "The model decides price and permission; name it in the field `model`."],
  ["messages", "The messages decide the prompt reservation; send them in the field `messages`."],
  ["prompt", "The prompt decides the prompt reservation; send it in the field `prompt`."],
  ["system", "The system text counts towards the prompt; send it in the field `system`."],
  ["temperature", "Send it in the field `temperature`; two values would contradict each other."],
  ["max_tokens", "The completion cap is reserved and may be lowered; send it in the field `max_tokens`."],
  ["max_completion_tokens", "The completion cap is reserved and may be lowered; send it as `max_tokens`."],
  ["max_output_tokens", "The completion cap is reserved and may be lowered; send it as `max_tokens`."],
  ["stream", "The gateway reads one whole answer per attempt; a stream would not be understood."],
  ["stream_options", "It only makes sense with a stream, which the client does not ask for here."],
  ["background", "The upstream would answer before the work is done, so its cost would never be seen."],
  ["deferred", "The upstream would answer before the work is done, so its cost would never be seen."],
]);

/** Names that count completions. A call has one answer, so the others would be paid for and dropped. */
export const COUNTS: ReadonlySet<string> = new Set(["n", "best_of"]);

/** Why an entry of `params` is always refused; null if it is not. */
export function ownParamFault(name: string, value: unknown): string | null {
  if (COUNTS.has(name) && value !== 1 && value !== null) {
    return "One call has one answer, so further ones would be paid for and thrown away; send several calls instead.";
  }
  return OWN_PARAMS.get(name) ?? null;
}
