/** What a route's name resolves to, under the models that a run may use. */
import { describe, expect, it } from "vitest";
import type { Target } from "../../../src/run/leases/shard.ts";
import { toWire } from "../../../src/errors.ts";
import { parseRoutes } from "../../../src/providers/config/routes.ts";
import { targetOf, type ModelRules } from "../../../src/providers/target.ts";
import { makeUpstream } from "./make.ts";

const price = (pico: number) => ({ inputPicoUsd: pico, cachedInputPicoUsd: pico, outputPicoUsd: pico });
const upstreams = [
  makeUpstream({ name: "alpha", prices: [{ pattern: "*", price: price(1) }], maxAttempts: 2, timeoutMs: 5 }),
  makeUpstream({
    name: "beta",
    models: [],
    keys: [
      { name: "A", key: "a" },
      { name: "B", key: "b" },
    ],
    prices: [{ pattern: "*", price: price(2) }],
  }),
  makeUpstream({ name: "gamma", kind: "anthropic", models: [], prices: [] }),
];
const read = parseRoutes(
  { fast: ["alpha/m", "beta/m", { model: "gamma/c", on: ["stop"] }], "beta-only": ["beta/m"] },
  upstreams,
);
const routes = read.ok ? read.routes : [];

function resolved(name: string | null, rules: Partial<ModelRules> = {}) {
  const all = { defaultModel: null, models: [], unpriced: "free", ...rules } as const;
  return targetOf(name, all, { upstreams, routes, defaultModel: null });
}

function target(name: string | null, rules: Partial<ModelRules> = {}): Target {
  const found = resolved(name, rules);
  if (!found.ok) throw new Error(JSON.stringify(found.reason));
  return found.target;
}

const gatesOf = (found: Target): string[][] =>
  (found.choices ?? []).map(({ targets }) => targets.map(({ gate }) => gate));

describe("a route", () => {
  it("is a choice of targets, each with its own price, limits, keys and protocol", () => {
    const found = target("fast");
    expect(gatesOf(found)).toEqual([["alpha"], ["beta#A", "beta#B"], ["gamma"]]);
    expect(found).toMatchObject({ route: "fast", upstream: "alpha", model: "m" });
    const firsts = (found.choices ?? []).map(({ targets: [first] }) => first);
    expect(
      firsts.map((first) => [first?.price?.inputPicoUsd, first?.attemptsMax, first?.timeoutMs, first?.protocol]),
    ).toEqual([
      [1, 2, 5, "openai"],
      [2, 3, 60_000, "openai"],
      [undefined, 3, 60_000, "anthropic"],
    ]);
    expect(found.choices?.map(({ on }) => on)).toEqual([null, null, ["stop"]]);
  });

  it("may be the default model of a run", () => {
    expect(target(null, { defaultModel: "fast" }).route).toBe("fast");
  });

  it("has all of its targets for a run that lists its name, whatever else the run may use", () => {
    expect(gatesOf(target("fast", { models: [["fast"]] }))).toHaveLength(3);
    expect(gatesOf(target("fast", { models: [["gamma/*", "fast"]] }))).toHaveLength(3);
    expect(gatesOf(target("fast", { models: [["fast", "x"], ["fast"]] }))).toHaveLength(3);
  });

  it("has only the targets that the run may use if a pattern happens to match its name", () => {
    expect(gatesOf(target("fast", { models: [["fas*", "beta/*"]] }))).toEqual([["beta#A", "beta#B"]]);
    expect(gatesOf(target("fast", { models: [["fast"], ["f*", "alpha/*"]] }))).toEqual([["alpha"]]);
    expect(gatesOf(target("fast", { models: [["*"]] }))).toHaveLength(3);
  });

  it.each([
    ["that does not list it", [["alpha/*", "beta/*", "gamma/*"]]],
    ["whose patterns match its name and none of its targets", [["f*"]]],
    ["whose parent does not list it", [["alpha/*"], ["fast"]]],
    ["that may use nothing", [[]]],
  ])("is refused to a run %s", (_, models) => {
    const found = resolved("fast", { models });
    expect(found.ok ? null : toWire(found.reason).error).toMatchObject({ code: "model_not_allowed" });
  });

  it("is refused, with the target, if one of its targets has no price", () => {
    const found = resolved("fast", { unpriced: "refuse" });
    expect(found).toMatchObject({ ok: false, reason: { reason: "unpriced_model", model: "gamma/c" } });
    expect(resolved("beta-only", { unpriced: "refuse" }).ok).toBe(true);
  });

  it("is named to a client that asked for an unknown model", () => {
    const found = resolved("x/y/z", { models: [] });
    expect(found.ok).toBe(true);
    const unknown = targetOf(
      "fats",
      { defaultModel: null, models: [], unpriced: "free" },
      {
        ...{ upstreams: upstreams.slice(1), routes, defaultModel: null },
      },
    );
    expect(unknown.ok ? null : toWire(unknown.reason).error.message).toContain("fast, beta-only");
  });
});
