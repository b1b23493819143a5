/**
 * An OTLP request as protocol buffers, for collectors that read no JSON. The numbers of fields are those of
 * opentelemetry-proto 1.x (https://github.com/open-telemetry/opentelemetry-proto).
 */
import type { OtlpAttribute, OtlpLink, OtlpRequest, OtlpSpan, OtlpValue } from "./body.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** How a field's value is written: the last three bits of its key. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;

const NOTHING: Bytes = new Uint8Array(0);
const encoder = new TextEncoder();

/** The body of the request that exports these spans. */
export function otlpBytes({ resourceSpans }: OtlpRequest): Bytes {
  return joined(
    resourceSpans.map(({ resource, scopeSpans }) =>
      message(1, [
        message(1, resource.attributes.map(attributeBytes(1))),
        ...scopeSpans.map(({ scope, spans }) =>
          message(2, [message(1, [text(1, scope.name), text(2, scope.version)]), ...spans.map(spanBytes)]),
        ),
      ]),
    ),
  );
}

function spanBytes(span: OtlpSpan): Bytes {
  const { status } = span;
  return message(2, [
    id(1, span.traceId),
    id(2, span.spanId),
    text(3, span.traceState ?? ""),
    id(4, span.parentSpanId ?? ""),
    text(5, span.name),
    number(6, span.kind),
    fixed64(7, span.startTimeUnixNano),
    fixed64(8, span.endTimeUnixNano),
    ...span.attributes.map(attributeBytes(9)),
    ...(span.links ?? []).map(linkBytes),
    message(15, [text(2, status.message ?? ""), number(3, status.code ?? 0)]),
  ]);
}

function linkBytes({ traceId, spanId, traceState = "" }: OtlpLink): Bytes {
  return message(13, [id(1, traceId), id(2, spanId), text(3, traceState)]);
}

const attributeBytes =
  (field: number) =>
  ({ key, value }: OtlpAttribute): Bytes =>
    message(field, [text(1, key), message(2, [valueBytes(value)])]);

/** Exactly one member is written, also if it is empty or zero: a value without any has no type. */
function valueBytes(value: OtlpValue): Bytes {
  if ("stringValue" in value) return lengthOf(1, encoder.encode(value.stringValue));
  if ("boolValue" in value) return joined([key(2, VARINT), varint(value.boolValue ? 1n : 0n)]);
  if ("intValue" in value) return joined([key(3, VARINT), varint(BigInt.asUintN(64, BigInt(value.intValue)))]);
  if ("doubleValue" in value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value.doubleValue, true);
    return joined([key(4, FIXED64), bytes]);
  }
  return message(
    5,
    value.arrayValue.values.map((each) => message(1, [valueBytes(each)])),
  );
}

/** A message inside another one, also if it is empty. */
function message(field: number, parts: readonly Bytes[]): Bytes {
  return lengthOf(field, joined(parts));
}

/** A text; one that is empty is left out, as the default. */
function text(field: number, value: string): Bytes {
  return value === "" ? NOTHING : lengthOf(field, encoder.encode(value));
}

/** The bytes of an id in hexadecimal digits; one that is empty is left out. */
function id(field: number, hex: string): Bytes {
  const bytes = new Uint8Array(hex.length / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return bytes.length === 0 ? NOTHING : lengthOf(field, bytes);
}

/** A number that is not negative; zero is left out, as the default. */
function number(field: number, value: number): Bytes {
  return value === 0 ? NOTHING : joined([key(field, VARINT), varint(BigInt(value))]);
}

/** Nanoseconds as decimal text. */
function fixed64(field: number, decimal: string): Bytes {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(decimal), true);
  return joined([key(field, FIXED64), bytes]);
}

function lengthOf(field: number, bytes: Uint8Array): Bytes {
  return joined([key(field, LENGTH), varint(BigInt(bytes.length)), bytes]);
}

function key(field: number, wire: number): Bytes {
  return varint(BigInt((field << 3) | wire));
}

/** Seven bits to a byte, the lowest first. */
function varint(value: bigint): Bytes {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return new Uint8Array(bytes);
}

function joined(parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
