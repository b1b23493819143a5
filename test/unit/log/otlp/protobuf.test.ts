import { describe, expect, it } from "vitest";
import type { OtlpRequest, OtlpSpan } from "../../../../src/log/otlp/body.ts";
import { otlpBytes } from "../../../../src/log/otlp/protobuf.ts";
import { reportLeftOut } from "../../../support/left-out.ts";
import { jsonOfProtobuf, OTLP_MODULE } from "../../../support/otlp-parser.ts";
import { missingPackage } from "../../../support/python-packages.ts";

const missing = missingPackage(OTLP_MODULE);
reportLeftOut("protocol buffers, read by OpenTelemetry", missing);

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const FULL: OtlpSpan = {
  traceId: TRACE,
  spanId: "00f067aa0ba902b7",
  parentSpanId: "ff00000000000001",
  traceState: "vendor=x",
  name: "chat grüße \u{1f600}",
  kind: 3,
  startTimeUnixNano: "1795879550000000001",
  endTimeUnixNano: "1795879551234567890",
  attributes: [
    { key: "text", value: { stringValue: "x".repeat(20_000) } },
    { key: "none", value: { stringValue: "" } },
    { key: "yes", value: { boolValue: true } },
    { key: "no", value: { boolValue: false } },
    { key: "zero", value: { intValue: "0" } },
    { key: "small", value: { intValue: "127" } },
    { key: "two bytes", value: { intValue: "128" } },
    { key: "large", value: { intValue: "9007199254740993" } },
    { key: "negative", value: { intValue: "-2" } },
    { key: "usd", value: { doubleValue: 0.000123 } },
    { key: "free", value: { doubleValue: 0 } },
    { key: "list", value: { arrayValue: { values: [{ stringValue: "stop" }, { stringValue: "" }] } } },
  ],
  links: [{ traceId: TRACE, spanId: "00f067aa0ba902b8", traceState: "a=b" }],
  status: { code: 2, message: "rate_limited" },
};
const BARE: OtlpSpan = {
  traceId: TRACE,
  spanId: "00f067aa0ba902b9",
  name: "run",
  kind: 1,
  startTimeUnixNano: "1",
  endTimeUnixNano: "2",
  attributes: [{ key: "a", value: { stringValue: "b" } }],
  status: {},
};

describe("a request in protocol buffers", () => {
  it.skipIf(missing !== null)("says to OpenTelemetry's own reader what the one in JSON says", () => {
    const request: OtlpRequest = {
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "fanout" } }] },
          scopeSpans: [{ scope: { name: "fanout", version: "1" }, spans: [FULL, BARE] }],
        },
      ],
    };
    const [json = ""] = jsonOfProtobuf([otlpBytes(request)]);
    expect(JSON.parse(json)).toEqual(request);
  });
});
