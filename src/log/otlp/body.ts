/**
 * Spans as an OTLP/HTTP request, in the form of its JSON: ids as hexadecimal text, 64-bit integers as decimal text, enumerations
 * as numbers (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
 */
import {
  clientTraceId,
  isRecorded,
  spanIdIn,
  spanIdOf,
  spanSeed,
  traceIdIn,
  traceIdOf,
  traceSeed,
  type TraceContext,
} from "../../trace-context.ts";
import { RUN_KEY, type AttributeValue, type NamedSpan, type SpanKind, type TracedRun } from "./spans.ts";

/** SHA-256 of a text, as hexadecimal digits. */
export type Hash = (text: string) => Promise<string>;

/** The value of an attribute. */
export type OtlpValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: { stringValue: string }[] } };
export type OtlpAttribute = { key: string; value: OtlpValue };
export type OtlpLink = { traceId: string; spanId: string; traceState?: string };
/** Where a span is. `parentSpanId` absent = it is the first of its trace. */
type Place = { traceId: string; parentSpanId?: string; traceState?: string };

export type OtlpSpan = Place & {
  spanId: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: OtlpAttribute[];
  links?: OtlpLink[];
  status: { code?: number; message?: string };
};

/** opentelemetry-proto's ExportTraceServiceRequest. */
export type OtlpRequest = {
  resourceSpans: {
    resource: { attributes: OtlpAttribute[] };
    scopeSpans: { scope: { name: string; version: string }; spans: OtlpSpan[] }[];
  }[];
};

/** The numbers of `SpanKind` in OTLP's protocol buffers. */
const KINDS: Readonly<Record<SpanKind, number>> = { internal: 1, client: 3 };
/** What a client of another trace waits for. Viewers of services connect it with the client's span. */
const KIND_SERVER = 2;
const STATUS_ERROR = 2;

/**
 * The ids of a run's trace and spans. They depend on nothing but names, so that a span which is exported twice, because a
 * restart fell between the post and its record, is the same span. Trace ids have 16 bytes, span ids 8.
 */
class SpanIds {
  readonly #known = new Map<string, Promise<string>>();
  readonly #hash: Hash;

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  /** `client`: of the request that has opened the run. */
  traceOf(runId: string, client: TraceContext | undefined): Promise<string> {
    const known = clientTraceId(client);
    return known === null ? this.#hashed(traceSeed(runId)).then(traceIdIn) : Promise.resolve(known);
  }

  spanOf(runId: string, key: string): Promise<string> {
    return this.#hashed(spanSeed(runId, key)).then(spanIdIn);
  }

  #hashed(name: string): Promise<string> {
    const known = this.#known.get(name) ?? this.#hash(name);
    this.#known.set(name, known);
    return known;
  }
}

/**
 * The request that exports these spans of a run. `droppedEvents`: events of the log that no request has
 * carried, because the collector failed; the run's own span shows them.
 */
export async function otlpRequest(
  spans: readonly NamedSpan[],
  run: TracedRun,
  { hash, version, droppedEvents }: { hash: Hash; version: string; droppedEvents: number },
): Promise<OtlpRequest> {
  const ids = new SpanIds(hash);
  const attributes = attributesOf({ "service.name": "fanout", "service.version": version });
  const scope = { name: "fanout", version };
  const written = await Promise.all(spans.map((span) => spanJson(span, run, ids, droppedEvents)));
  return { resourceSpans: [{ resource: { attributes }, scopeSpans: [{ scope, spans: written }] }] };
}

/** Where a span is: in its client's trace below the client's span, or in its run's. */
async function placeOf(span: NamedSpan, run: TracedRun, ids: SpanIds): Promise<Place> {
  const { client, isAsked, parentKey } = span;
  const own = parentKey === null ? {} : { parentSpanId: await ids.spanOf(run.id, parentKey) };
  if (!isRecorded(client)) return { traceId: await ids.traceOf(run.id, run.trace), ...own };
  const traceId = traceIdOf(client);
  if (!isAsked) return { traceId, ...own };
  return { traceId, parentSpanId: spanIdOf(client), ...stateOf(client) };
}

async function linksOf(span: NamedSpan, run: TracedRun, ids: SpanIds): Promise<OtlpLink[]> {
  const { client, isAsked, parentKey } = span;
  const links: OtlpLink[] = [];
  if (isAsked && client !== null) {
    if (!isRecorded(client)) links.push({ traceId: traceIdOf(client), spanId: spanIdOf(client), ...stateOf(client) });
    else if (parentKey !== null) {
      const traceId = await ids.traceOf(run.id, run.trace);
      links.push({ traceId, spanId: await ids.spanOf(run.id, parentKey) });
    }
  }
  const { parentId, parentTrace } = run;
  // A child run is a trace of its own, linked to the run that opened it: it may live as long, and knows no ancestors.
  if (span.key === RUN_KEY && parentId !== null) {
    links.push({ traceId: await ids.traceOf(parentId, parentTrace), spanId: await ids.spanOf(parentId, RUN_KEY) });
  }
  return links;
}

function stateOf({ state }: TraceContext): { traceState?: string } {
  return state === undefined ? {} : { traceState: state };
}

async function spanJson(span: NamedSpan, run: TracedRun, ids: SpanIds, droppedEvents: number): Promise<OtlpSpan> {
  const isRun = span.key === RUN_KEY;
  const links = await linksOf(span, run, ids);
  const isServer = span.isAsked && isRecorded(span.client);
  const dropped: Record<string, AttributeValue> =
    isRun && droppedEvents > 0 ? { "fanout.dropped_events": { int: droppedEvents } } : {};
  const failed: Record<string, AttributeValue> = span.errorCode === null ? {} : { "error.type": span.errorCode };
  return {
    ...(await placeOf(span, run, ids)),
    spanId: await ids.spanOf(run.id, span.key),
    name: span.name,
    kind: isServer ? KIND_SERVER : KINDS[span.kind],
    startTimeUnixNano: nanos(Math.min(span.startMs, span.endMs)),
    endTimeUnixNano: nanos(span.endMs),
    attributes: attributesOf({ "fanout.run.id": run.id, ...span.attributes, ...dropped, ...failed }),
    ...(links.length === 0 ? {} : { links }),
    status: span.errorCode === null ? {} : { code: STATUS_ERROR, message: span.errorCode },
  };
}

function attributesOf(values: Record<string, AttributeValue>): OtlpAttribute[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: AttributeValue): OtlpValue {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if ("int" in value) return { intValue: String(Math.round(value.int)) };
  if ("double" in value) return { doubleValue: value.double };
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}

function nanos(atMs: number): string {
  return String(BigInt(Math.max(0, Math.round(atMs))) * 1_000_000n);
}
