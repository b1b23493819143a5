/**
 * OpenTelemetry's own reader of trace requests: its protocol buffers in Python, whose JSON reader refuses fields that a message
 * does not have and values of a wrong type. Ids are hexadecimal in OTLP, and base64 in all other JSON of protocol buffers.
 */
import { z } from "zod";
import { runWithPackages } from "./python-packages.ts";

/** The module that a test asks `missingPackage` for. */
export const OTLP_MODULE = "opentelemetry.proto.collector.trace.v1.trace_service_pb2";

const PROGRAM = `
import base64, json, sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request

SIZES = {"traceId": 16, "spanId": 8, "parentSpanId": 8}

def with_base64_ids(value):
    if isinstance(value, list):
        return [with_base64_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    read = {}
    for key, inner in value.items():
        if key not in SIZES:
            read[key] = with_base64_ids(inner)
            continue
        if inner != inner.lower() or len(bytes.fromhex(inner)) != SIZES[key]:
            raise ValueError(f"{key} is {inner!r}")
        read[key] = base64.b64encode(bytes.fromhex(inner)).decode()
    return read

def tokens(span):
    found = {attribute.key: attribute.value.int_value for attribute in span.attributes}
    return [found.get("gen_ai.usage.input_tokens", 0), found.get("gen_ai.usage.output_tokens", 0)]

read = []
for body in json.load(sys.stdin):
    request = Parse(json.dumps(with_base64_ids(json.loads(body))), Request())
    again = Request.FromString(request.SerializeToString())
    assert again == request
    for resource in again.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span.name
                links = [[link.trace_id.hex(), link.span_id.hex()] for link in span.links]
                own = {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex()}
                read.append({**own, "name": span.name, "state": span.trace_state, "links": links, "tokens": tokens(span)})
json.dump(read, sys.stdout)
`;

const TO_JSON = `
import base64, json, sys
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request

IDS = ("traceId", "spanId", "parentSpanId")

def with_hex_ids(value):
    if isinstance(value, list):
        return [with_hex_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64decode(inner).hex() if key in IDS else with_hex_ids(inner) for key, inner in value.items()}

requests = [Request.FromString(base64.b64decode(body)) for body in json.load(sys.stdin)]
json.dump([json.dumps(with_hex_ids(MessageToDict(request, use_integers_for_enums=True))) for request in requests], sys.stdout)
`;

const id = z.string().regex(/^(?!0{16})[0-9a-f]{16}$/);
const traceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/);
const readSpan = z.strictObject({
  trace: traceId,
  id,
  /** Empty = it has none. */
  parent: z.union([id, z.literal("")]),
  name: z.string().min(1),
  state: z.string(),
  links: z.array(z.tuple([traceId, id])),
  /** Prompt and completion tokens; 0 where the span names none. */
  tokens: z.tuple([z.int(), z.int()]),
});

export type ReadSpan = z.infer<typeof readSpan>;

/** The spans of these requests, as OpenTelemetry reads them. Throws if a request is not one. */
export function readSpans(bodies: readonly string[]): ReadSpan[] {
  return z.array(readSpan).parse(JSON.parse(runWithPackages(PROGRAM, JSON.stringify(bodies))));
}

/** Requests in protocol buffers as those in JSON that say the same. Throws if one cannot be read. */
export function jsonOfProtobuf(bodies: readonly Uint8Array[]): string[] {
  const input = JSON.stringify(bodies.map((body) => Buffer.from(body).toString("base64")));
  return z.array(z.string()).parse(JSON.parse(runWithPackages(TO_JSON, input)));
}
