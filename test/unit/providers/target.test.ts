import { describe, expect, it } from "vitest";
import { toWire } from "../../../src/errors.ts";
import { USABLE_MODEL_CHARS_MAX, USABLE_MODELS_MAX } from "../../../src/limits.ts";
import { mayBeHedged, targetOf } from "../../../src/providers/target.ts";
import type { Route } from "../../../src/providers/config/routes.ts";
import { makeUpstream } from "./make.ts";

const rules = { defaultModel: null, models: [], unpriced: "free" } as const;

function targetOfModel(asked: string | null, defaultModel: string | null = null) {
  const upstreams = [makeUpstream({ name: "router", allowParams: ["plugins"] })];
  const resolved = targetOf(asked, { ...rules, defaultModel }, { upstreams, defaultModel: null });
  if (!resolved.ok) throw new Error(JSON.stringify(resolved.reason));
  return resolved.target;
}

describe("the target of a model", () => {
  it("carries what its upstream lets through under a limit", () => {
    expect(targetOfModel("router/m")).toMatchObject({ model: "m", allowParams: ["plugins"] });
    expect(targetOfModel("router/m")).not.toHaveProperty("unbounded");
  });

  it.each(["openai/gpt-x:online", "gpt-x:ONLINE", "m:nitro", "@preset/mine", "openai/gpt-x@preset/mine"])(
    "notes that %s buys more than a model, also where it is a run's default",
    (model) => {
      const noted = [{ field: "model", spends: ["usd", "prompt_tokens", "completion_tokens"], allowedBy: "model" }];
      expect(targetOfModel(`router/${model}`).unbounded).toMatchObject(noted);
      expect(targetOfModel(null, `router/${model}`).unbounded).toMatchObject(noted);
    },
  );

  it.each(["online", "m:free", "m:thinking", "preset/m"])("takes %s for a model", (model) => {
    expect(targetOfModel(`router/${model}`)).not.toHaveProperty("unbounded");
  });
});

describe("a call that may be hedged by configuration", () => {
  const hedged = makeUpstream({ name: "hedged", hedge: { after: "p95", maxExtra: 0.05 } });
  const plain = makeUpstream({ name: "plain" });
  const entryOf = (upstream: typeof plain): Route["entries"][number] => ({ upstream, model: "m", on: [] });
  const routes: Route[] = [
    { name: "both", entries: [entryOf(plain), entryOf(hedged)] },
    { name: "neither", entries: [entryOf(plain)] },
  ];

  it.each([
    ["hedged/m", true],
    ["plain/m", false],
    ["both", true],
    ["neither", false],
    // The default may be the run's own, which only its object knows.
    [null, true],
  ])("asks for %s: %s", (model, expected) => {
    expect(mayBeHedged(model, { upstreams: [plain, hedged], routes })).toBe(expected);
  });

  it("is none where no upstream hedges, whatever the run's default is", () => {
    expect(mayBeHedged(null, { upstreams: [plain], routes: [] })).toBe(false);
  });
});

describe("the refusal of a model", () => {
  const refusedModel = (model: string, models: readonly (readonly string[])[], upstreams = [makeUpstream()]) => {
    const resolved = targetOf(model, { ...rules, models }, { upstreams, defaultModel: null });
    return resolved.ok ? null : toWire(resolved.reason).error;
  };

  it("names the models of the configured upstreams to a run without a list", () => {
    const upstreams = [
      makeUpstream({ name: "acme", models: ["gpt-*", "o4"] }),
      makeUpstream({ name: "sim", kind: "simulated", models: ["echo", "echo?*"] }),
    ];
    expect(refusedModel("nothing", [], upstreams)).toMatchObject({
      code: "model_not_found",
      message: 'no configured upstream serves the model "nothing"; the run may use acme/gpt-*, acme/o4, sim/echo',
    });
  });

  it("names the run's own list, which is the narrowest", () => {
    expect(refusedModel("gpt-x", [["acme/*"], ["acme/mini", "acme/nano"]])).toMatchObject({
      code: "model_not_allowed",
      message: 'the run may not use the model "gpt-x"; the run may use acme/mini, acme/nano',
      usable_models: "acme/mini, acme/nano",
    });
  });

  it("names a bounded number of them, each of bounded length", () => {
    const list = Array.from({ length: USABLE_MODELS_MAX + 3 }, (_, at) => `${at}${"x".repeat(USABLE_MODEL_CHARS_MAX)}`);
    const message = refusedModel("gpt-x", [list])?.message ?? "";
    expect(message).toContain(" and 3 more (GET /v1/models lists all)");
    expect(message.length).toBeLessThan(USABLE_MODELS_MAX * (USABLE_MODEL_CHARS_MAX + 2) + 120);
  });
});
