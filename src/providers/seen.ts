/** What an attempt that was stopped, or whose stream broke off, is known to have used. */
import type { Classification, Seen } from "../call.ts";
import type { Arrived } from "./formats/aggregate/stream.ts";
import type { Upstream } from "./config/types.ts";

/**
 * The classification with what was seen of its stream, if its upstream stops generating when the connection closes; `arrived`
 * null = nothing of a stream arrived. A token has at least one byte, so the bytes of the answer bound its tokens.
 */
export function withSeen(classification: Classification, upstream: Upstream, arrived: Arrived | null): Classification {
  if (classification.kind === "success" || upstream.abortCost === "reservation" || arrived === null)
    return classification;
  const { promptTokens, completionTokens, contentBytes } = arrived;
  const bound = Math.ceil(contentBytes * upstream.bounds.tokensPerByte);
  const seen: Seen = { promptTokens, completionTokens: Math.max(completionTokens ?? 0, bound) };
  return { ...classification, seen };
}
