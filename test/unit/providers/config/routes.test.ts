import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../../src/env.ts";
import { ROUTE_TARGETS_MAX, ROUTES_MAX } from "../../../../src/limits.ts";
import { parseRoutes } from "../../../../src/providers/config/routes.ts";
import { makeUpstream } from "../make.ts";

const upstreams = [
  makeUpstream({ name: "alpha", models: ["m", "m-*"] }),
  makeUpstream({ name: "beta", models: [] }),
  makeUpstream({ name: "gamma", kind: "anthropic", models: [] }),
];

const parsed = (value: unknown) => parseRoutes(value, upstreams);

describe("ROUTES", () => {
  it("lists targets in order, each with the causes for which calls come to it", () => {
    const fast = ["alpha/m", "beta/m", { model: "gamma/c", on: ["rate_limited", "stop", "timeout", "context_length"] }];
    const read = parsed({ fast });
    const shown = read.ok
      ? read.routes.map(({ name, entries }) => [
          name,
          entries.map((entry) => [entry.upstream.name, entry.model, entry.on]),
        ])
      : read;
    expect(shown).toEqual([
      [
        "fast",
        [
          ["alpha", "m", null],
          ["beta", "m", null],
          ["gamma", "c", ["rate_limited", "stop", "timeout", "context_length"]],
        ],
      ],
    ]);
  });

  it("is none if it is not set", () => {
    expect([parsed(undefined), parsed(null)]).toEqual([
      { ok: true, routes: [] },
      { ok: true, routes: [] },
    ]);
  });

  it.each([
    ["a list", [], "", "must be an object of routes by name"],
    ["a name with a slash", { "a/b": ["alpha/m"] }, ".a/b", "a route's name has"],
    ["a pattern for a name", { "fast*": ["alpha/m"] }, ".fast*", "a route's name has"],
    ["the name of a model", { m: ["alpha/m"] }, ".m", "is a model of UPSTREAMS.alpha, too"],
    ["no targets", { fast: [] }, ".fast", "must be a list of one or more targets"],
    ["a target that is a number", { fast: ["alpha/m", 7] }, ".fast.1", "must be a model such as"],
    ["a target that nobody serves", { fast: ["delta/m"] }, ".fast.0", "is served by no upstream in UPSTREAMS"],
    ["another route as target", { fast: ["slow"], slow: ["alpha/m"] }, ".fast.0", "is a route"],
    ["a target twice", { fast: ["alpha/m-1", "beta/x", "m-1"] }, ".fast.2", "is in this list already"],
    ["causes for the first target", { fast: [{ model: "alpha/m", on: ["stop"] }] }, ".fast.0.on", "calls begin here"],
    ["a cause that is none", { fast: ["alpha/m", { model: "beta/m", on: ["bad"] }] }, ".fast.1.on.0", "must be a list"],
    ["no cause", { fast: ["alpha/m", { model: "beta/m", on: [] }] }, ".fast.1.on", "must be a list of one or more of"],
    [
      "an unknown field",
      { fast: ["alpha/m", { model: "beta/m", weight: 2 }] },
      ".fast.1.weight",
      "is not a known field",
    ],
    ["no model", { fast: ["alpha/m", { on: ["stop"] }] }, ".fast.1.model", "must be a model such as"],
  ])("refuses %s, with the place and what is expected", (_, value, path, message) => {
    const refused = parsed(value);
    expect(refused).toMatchObject({ ok: false, path: `ROUTES${path}` });
    expect(refused.ok ? "" : refused.message).toContain(message);
  });

  it("has as many targets and routes as the bounds, and no more", () => {
    const targets = (count: number) => ({ fast: Array.from({ length: count }, (_, index) => `beta/m${index}`) });
    expect([parsed(targets(ROUTE_TARGETS_MAX)).ok, parsed(targets(ROUTE_TARGETS_MAX + 1)).ok]).toEqual([true, false]);
    const routes = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`r${index}`, ["beta/m"]]));
    expect([parsed(routes(ROUTES_MAX)).ok, parsed(routes(ROUTES_MAX + 1)).ok]).toEqual([true, false]);
  });

  it("is an object, or JSON text of one; an error in the text has its place", () => {
    const vars = { UPSTREAMS: { sim: { kind: "simulated" } } };
    const object = parseConfig({ ...vars, ROUTES: { fast: ["sim/echo"] } });
    const text = parseConfig({ ...vars, ROUTES: '{"fast":["sim/echo"]}' });
    expect(object.ok && object.config.routes.map(({ name }) => name)).toEqual(["fast"]);
    expect(text.ok && text.config.routes.map(({ name }) => name)).toEqual(["fast"]);
    expect(parseConfig({ ...vars, ROUTES: "" })).toMatchObject({ ok: true, config: { routes: [] } });
    const broken = parseConfig({ ...vars, ROUTES: '{"fast":["sim/echo"' });
    expect(broken).toMatchObject({ ok: false, reason: { reason: "misconfigured", variable: "ROUTES" } });
    const wrong = parseConfig({ ...vars, ROUTES: { fast: ["echo/x"] } });
    expect(wrong).toMatchObject({ ok: false, reason: { variable: "ROUTES.fast.0" } });
  });
});
