/** Which events of a log one request exports, and what its result makes of the position in the log. */
import type { LoggedEvent } from "../../run/log.ts";
import { OTLP_BODY_CHARS_MAX, OTLP_INTERVAL_MS, OTLP_RETRY_MS, OTLP_SPANS_MAX, OTLP_TRIES_MAX } from "../../limits.ts";
import { spanEndedBy, type NamedSpan, type TracedRun } from "./spans.ts";

/** How far a log is exported: the last event, the failed posts of what follows it, and the events that were dropped. */
export type ExportCursor = { seq: number; tries: number; dropped: number };

/** Nothing is exported yet. */
export const EXPORT_START: ExportCursor = { seq: 0, tries: 0, dropped: 0 };

/** Spans to export, and the number of the last event that they include. */
export type SpanBatch = { spans: NamedSpan[]; lastSeq: number };

/** Stored events, one JSON text per line; the last of them has the number `last`. */
type StoredLines = { last: number; lines: string };

/** The spans of one request: those of the events after `afterSeq`, in order, up to the bounds of a request. */
export function nextBatch(rows: readonly StoredLines[], afterSeq: number, run: TracedRun): SpanBatch {
  const spans: NamedSpan[] = [];
  const begun = new Map<string, number>();
  let lastSeq = afterSeq;
  let chars = 0;
  for (const row of rows) {
    const lines = row.lines.split("\n");
    let seq = row.last - lines.length;
    for (const line of lines) {
      seq += 1;
      if (seq <= lastSeq) continue;
      // Written by this object, as an event.
      const event: LoggedEvent = JSON.parse(line);
      const span = withFirstAttempt(spanEndedBy(event, run), begun);
      const size = span === null ? 0 : JSON.stringify(span).length;
      const isFull = spans.length >= OTLP_SPANS_MAX || (spans.length > 0 && chars + size > OTLP_BODY_CHARS_MAX);
      if (span !== null && isFull) return { spans, lastSeq };
      if (span !== null) spans.push(span);
      chars += size;
      lastSeq = seq;
    }
  }
  return { spans, lastSeq };
}

/**
 * A call begins no later than those of its attempts that are in the same request: the event that ends it knows when its last
 * attempt was queued. `begun`: when the first attempt of a call began, by the call's key.
 */
function withFirstAttempt(span: NamedSpan | null, begun: Map<string, number>): NamedSpan | null {
  if (span === null) return null;
  const { key, parentKey, kind, startMs } = span;
  if (kind === "client" && parentKey !== null) begun.set(parentKey, Math.min(startMs, begun.get(parentKey) ?? startMs));
  return { ...span, startMs: Math.min(startMs, begun.get(key) ?? startMs) };
}

/** `accepted`; `refused`: sending it again is of no use; `failed`: the collector is away or busy. */
export type PostResult = "accepted" | "refused" | "failed";

/** What a status means; null = no response. OTLP names the statuses after which a request may be repeated. */
export function resultOf(status: number | null): PostResult {
  if (status === null || [429, 502, 503, 504].includes(status)) return "failed";
  return status >= 200 && status < 300 ? "accepted" : "refused";
}

/**
 * The position after a post. A batch that the collector refuses is dropped. After the last try everything up to `logSeq`,
 * the newest event, is: a collector that is away costs a few posts, however much the run does meanwhile.
 */
export function afterPost(
  cursor: ExportCursor,
  lastSeq: number,
  { result, logSeq }: { result: PostResult; logSeq: number },
): ExportCursor {
  if (result === "accepted") return { seq: lastSeq, tries: 0, dropped: cursor.dropped };
  if (result === "refused") return { seq: lastSeq, tries: 0, dropped: cursor.dropped + (lastSeq - cursor.seq) };
  const tries = cursor.tries + 1;
  if (tries < OTLP_TRIES_MAX) return { ...cursor, tries };
  return { seq: logSeq, tries: 0, dropped: cursor.dropped + (logSeq - cursor.seq) };
}

/** How long to wait after an export before the next, ms. */
export function pauseMs({ tries }: ExportCursor): number {
  return tries === 0 ? OTLP_INTERVAL_MS : OTLP_RETRY_MS * 2 ** (tries - 1);
}
