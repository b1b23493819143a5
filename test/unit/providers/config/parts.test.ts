import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../../src/env.ts";
import { CONFIG_PARTS_MAX } from "../../../../src/limits.ts";
import { combinedParts, splitVariableOf } from "../../../../src/providers/config/parts.ts";

const upstreams = (vars: Record<string, unknown>) => combinedParts("UPSTREAMS", vars);

describe("the parts of a variable", () => {
  it("are merged in the order of their numbers, the one without a number first", () => {
    const vars = { UPSTREAMS_10: '{"d":4}', UPSTREAMS_2: '{"c":3}', UPSTREAMS: { a: 1 }, UPSTREAMS_1: '{"b":2}' };
    const combined = upstreams(vars);
    expect(combined).toEqual({ ok: true, value: { a: 1, b: 2, c: 3, d: 4 } });
    expect(combined.ok && JSON.stringify(combined.value)).toBe('{"a":1,"b":2,"c":3,"d":4}');
  });

  it("are merged at every level, so that one upstream with many prices can be split", () => {
    const vars = {
      UPSTREAMS_1: '{"a":{"kind":"openai","prices":{"x":{"input":1,"output":2}}}}',
      UPSTREAMS_2: '{"a":{"prices":{"y":{"input":3,"output":4}}}}',
    };
    expect(upstreams(vars)).toEqual({
      ok: true,
      value: { a: { kind: "openai", prices: { x: { input: 1, output: 2 }, y: { input: 3, output: 4 } } } },
    });
  });

  it.each([
    ["UPSTREAMS_2.a.kind", { UPSTREAMS_1: '{"a":{"kind":"pull"}}', UPSTREAMS_2: '{"a":{"kind":"pull"}}' }],
    ["UPSTREAMS_1.a.models", { UPSTREAMS: { a: { models: ["x"] } }, UPSTREAMS_1: '{"a":{"models":["y"]}}' }],
    ["UPSTREAMS_1.a", { UPSTREAMS: { a: null }, UPSTREAMS_1: '{"a":{}}' }],
  ])("do not set a field twice: %s", (path, vars) => {
    expect(upstreams(vars)).toMatchObject({ ok: false, path, message: expect.stringContaining("earlier part") });
  });

  it.each([
    ["UPSTREAMS_0", { UPSTREAMS_0: "{}" }],
    ["UPSTREAMS_01", { UPSTREAMS_01: "{}" }],
    [`UPSTREAMS_${CONFIG_PARTS_MAX + 1}`, { [`UPSTREAMS_${CONFIG_PARTS_MAX + 1}`]: "{}" }],
    ["UPSTREAMS_2", { UPSTREAMS_1: "{}", UPSTREAMS_2: '{"a":' }],
    ["UPSTREAMS_1", { UPSTREAMS_1: "[]" }],
    ["UPSTREAMS", { UPSTREAMS: "[]", UPSTREAMS_1: "{}" }],
  ])("name the part that is wrong: %s", (path, vars) => {
    expect(upstreams(vars)).toMatchObject({ ok: false, path });
  });

  it("may be as many as the bound, may be empty, and may have other names beside them", () => {
    const last = `UPSTREAMS_${CONFIG_PARTS_MAX}`;
    expect(upstreams({ [last]: '{"a":1}', UPSTREAMS_3: "", UPSTREAMS_KEY: "k" })).toEqual({
      ok: true,
      value: { a: 1 },
    });
    expect(upstreams({ UPSTREAMS_3: "" })).toEqual({ ok: true, value: undefined });
  });

  it("keep a field named __proto__ as a field", () => {
    const combined = upstreams({ UPSTREAMS_1: '{"__proto__":{"a":1}}', UPSTREAMS_2: '{"__proto__":{"b":2}}' });
    expect(combined.ok && JSON.stringify(combined.value)).toBe('{"__proto__":{"a":1,"b":2}}');
  });

  it("make up UPSTREAMS, ROUTES and PANEL of a configuration", () => {
    const vars = {
      UPSTREAMS_1: '{"a":{"kind":"simulated"}}',
      UPSTREAMS_2: '{"b":{"kind":"simulated"}}',
      ROUTES_1: '{"fast":["a/echo"]}',
      ROUTES_2: '{"late":["b/slow"]}',
      PANEL_1: '{"panel":["a/echo","b/echo"]}',
      PANEL_2: '{"judge":"a/echo"}',
    };
    const parsed = parseConfig(vars);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
    expect(parsed.config.upstreams.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(parsed.config.routes.map(({ name }) => name)).toEqual(["fast", "late"]);
    expect(parsed.config.panel).not.toBeNull();
  });

  it("are told from secrets with similar names", () => {
    expect(["UPSTREAMS", "ROUTES_2", "PANEL_32"].map(splitVariableOf)).toEqual(["UPSTREAMS", "ROUTES", "PANEL"]);
    expect(["UPSTREAMS_KEY", "UPSTREAMS1", "OPENAI_API_KEY_2"].map(splitVariableOf)).toEqual([null, null, null]);
  });
});
