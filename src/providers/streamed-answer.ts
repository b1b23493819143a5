/** Classifies a streamed answer to a call whose client waits for JSON. */
import { RESPONSE_BYTES_MAX } from "../limits.ts";
import { aggregateStream, type AggregatedFamily, type Arrived } from "./formats/aggregate/stream.ts";
import type { Classification } from "../call.ts";
import type { HttpAnswer } from "./classify.ts";
import type { Upstream } from "./config/types.ts";
import type { StreamProgress } from "./read-stream.ts";
import { withSeen } from "./seen.ts";

/** Whether an answer is an event stream. Any other is read as JSON, whatever was requested. */
export function isEventStream({ headers }: Pick<Response, "headers">): boolean {
  return (headers.get("content-type") ?? "").includes("text/event-stream");
}

/** What has arrived of a stream that is stopped before its end; null = nothing. */
export function arrivedOf(progress: StreamProgress): Arrived | null {
  if (progress.family === null || progress.bytes === 0) return null;
  const aggregated = aggregateStream(progress.family, progress.taken(), "broken");
  return aggregated.kind === "truncated" ? aggregated.arrived : null;
}

/** The classification of a stream that was read to its end. `classify` reads the JSON answer that is aggregated from it. */
export function streamedClassification(
  upstream: Upstream,
  {
    family,
    progress,
    how,
  }: { family: AggregatedFamily; progress: StreamProgress; how: "clean" | "broken" | "too_large" },
  classify: (body: HttpAnswer["body"]) => Classification,
): Classification {
  if (how === "too_large") return classify({ ok: false, why: "too_large" });
  const aggregated = aggregateStream(family, progress.taken(), how);
  if (aggregated.kind === "truncated") {
    return withSeen(classify(null), upstream, progress.bytes === 0 ? null : aggregated.arrived);
  }
  const { text } = aggregated;
  return classify(text.length > RESPONSE_BYTES_MAX ? { ok: false, why: "too_large" } : { ok: true, text });
}
