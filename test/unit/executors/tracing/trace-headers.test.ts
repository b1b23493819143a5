import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { withTrace } from "../../../../src/executors/tracing/trace-headers.ts";
import { parseConfig } from "../../../../src/env.ts";
import type { TraceContext } from "../../../../src/trace-context.ts";
import { makeLease, makeUpstream } from "../../providers/make.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SAMPLED: TraceContext = { parent: `00-${TRACE}-00f067aa0ba902b7-01`, state: "vendor=1" };
const UNSAMPLED: TraceContext = { parent: `00-${TRACE}-00f067aa0ba902b7-00` };

async function headersOf(traces: "client" | "attempt" | undefined, trace: TraceContext | undefined) {
  const headers = { "x-own": "kept" };
  const upstream = makeUpstream(traces === undefined ? { headers } : { headers, traces });
  const lease = makeLease({ attemptId: "call.2", ...(trace === undefined ? {} : { trace }) });
  return (await withTrace(upstream, lease, "run_1")).headers;
}

describe("the headers of an attempt", () => {
  it("have no trace unless the upstream gets them, and unless there is one", async () => {
    expect(await headersOf(undefined, SAMPLED)).toEqual({ "x-own": "kept" });
    expect(await headersOf("client", undefined)).toEqual({ "x-own": "kept" });
  });

  it("have the client's trace as it came, where no span of the attempt is exported", async () => {
    const sent = { "x-own": "kept", traceparent: SAMPLED.parent, tracestate: "vendor=1" };
    expect(await headersOf("client", SAMPLED)).toEqual(sent);
    expect(await headersOf("client", UNSAMPLED)).toEqual({ "x-own": "kept", traceparent: UNSAMPLED.parent });
  });

  it("name the attempt's own span where that is exported in the client's trace", async () => {
    const span = createHash("sha256").update("span run_1 attempt call.2").digest("hex").slice(0, 16);
    const sent = { "x-own": "kept", traceparent: `00-${TRACE}-${span}-01`, tracestate: "vendor=1" };
    expect(await headersOf("attempt", SAMPLED)).toEqual(sent);
    expect(await headersOf("attempt", UNSAMPLED)).toEqual({ "x-own": "kept", traceparent: UNSAMPLED.parent });
  });
});

describe("OTLP_CONTENT in the configuration", () => {
  const exportsContent = (vars: object) => {
    const UPSTREAMS = { up: { kind: "openai", base_url: "https://up.example/v1" } };
    const parsed = parseConfig({ ADMIN_KEY: "k", UPSTREAMS, ...vars });
    return parsed.ok ? parsed.config.upstreams[0]?.exportsContent : parsed.reason;
  };

  it("needs a collector, and is 1 or 0", () => {
    const OTLP_ENDPOINT = "https://otel.example";
    expect(exportsContent({ OTLP_ENDPOINT, OTLP_CONTENT: "1" })).toBe(true);
    expect(exportsContent({ OTLP_CONTENT: "1" })).toBeUndefined();
    for (const OTLP_CONTENT of ["0", "", undefined]) {
      expect(exportsContent({ OTLP_ENDPOINT, OTLP_CONTENT })).toBeUndefined();
    }
    expect(exportsContent({ OTLP_CONTENT: "yes" })).toMatchObject({ variable: "OTLP_CONTENT" });
  });
});

describe("an upstream's traceparent in the configuration", () => {
  const tracesOf = (fields: object, vars: object = {}) => {
    const UPSTREAMS = { up: { kind: "openai", base_url: "https://up.example/v1", ...fields } };
    const parsed = parseConfig({ ADMIN_KEY: "k", UPSTREAMS, ...vars });
    return parsed.ok ? parsed.config.upstreams[0]?.traces : parsed.reason;
  };

  it("is off unless it is true, and names attempts where traces are exported", () => {
    expect(tracesOf({})).toBeUndefined();
    expect(tracesOf({ traceparent: false }, { OTLP_ENDPOINT: "https://otel.example" })).toBeUndefined();
    expect(tracesOf({ traceparent: true })).toBe("client");
    expect(tracesOf({ traceparent: true }, { OTLP_ENDPOINT: "https://otel.example" })).toBe("attempt");
    expect(tracesOf({ traceparent: "yes" })).toMatchObject({ message: expect.stringContaining("true or false") });
  });
});
