import { describe, expect, it } from "vitest";
import { parseOtlp } from "../../../../src/log/otlp/settings.ts";

function targetOf(endpoint: string, headers: string | null = null, vars: Record<string, unknown> = {}) {
  const parsed = parseOtlp({ endpoint, headers }, vars);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.target;
}

describe("OTLP_ENDPOINT and OTLP_HEADERS", () => {
  it("export nothing unless there is an endpoint", () => {
    expect(parseOtlp({ endpoint: null, headers: "a=b" }, {})).toEqual({ ok: true, target: null });
  });

  it("append the path of traces to an address without one, and keep one that is there", () => {
    const url = (endpoint: string) => targetOf(endpoint)?.url;
    expect(url("https://otel.example")).toBe("https://otel.example/v1/traces");
    expect(url("http://otel.example:4318/")).toBe("http://otel.example:4318/v1/traces");
    expect(url("https://otel.example/otlp/v1/traces?x=1")).toBe("https://otel.example/otlp/v1/traces?x=1");
  });

  it("read headers, whose values may have further signs of equality or be secrets", () => {
    const headers = "Authorization=secret:OTEL_KEY, x-scope = a=b,";
    expect(targetOf("https://o.example", headers, { OTEL_KEY: "Basic eDp5" })?.headers).toEqual({
      authorization: "Basic eDp5",
      "x-scope": "a=b",
    });
  });

  it.each([
    ["otel.example:4318", null, "OTLP_ENDPOINT"],
    ["ftp://otel.example", null, "OTLP_ENDPOINT"],
    ["https://user:hidden@otel.example", null, "OTLP_ENDPOINT"],
    ["https://otel.example", "hidden", "OTLP_HEADERS"],
    ["https://otel.example", "a b=hidden", "OTLP_HEADERS"],
    ["https://otel.example", "content-type=hidden", "OTLP_HEADERS"],
    ["https://otel.example", "a=hid\nden", "OTLP_HEADERS"],
    ["https://otel.example", "a=secret:MISSING", "OTLP_HEADERS"],
  ])("refuse %j with %j, naming %s and no value", (endpoint, headers, variable) => {
    const parsed = parseOtlp({ endpoint, headers }, {});
    expect(parsed).toMatchObject({ ok: false, variable });
    expect(JSON.stringify(parsed)).not.toContain("hidden");
  });

  it("write JSON unless OTLP_PROTOCOL names protocol buffers, and refuse what they cannot write", () => {
    const parsed = (protocol: string | null) =>
      parseOtlp({ endpoint: "https://o.example", headers: null, protocol }, {});
    expect(parsed(null)).toMatchObject({ target: { encoding: "json" } });
    expect(parsed("http/json")).toMatchObject({ target: { encoding: "json" } });
    expect(parsed("http/protobuf")).toMatchObject({ target: { encoding: "protobuf" } });
    expect(parsed("grpc")).toMatchObject({ ok: false, variable: "OTLP_PROTOCOL" });
  });
});
