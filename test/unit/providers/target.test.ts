import { describe, expect, it } from "vitest";
import { toWire } from "../../../src/errors.ts";
import { USABLE_MODEL_CHARS_MAX, USABLE_MODELS_MAX } from "../../../src/limits.ts";
import { mayBeHedged, nameAtEndpoint, targetOf } from "../../../src/providers/target.ts";
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

describe("a plain name that upstreams of several kinds serve", () => {
  const gpt = makeUpstream({ name: "gpt", models: ["*"] });
  const claude = makeUpstream({ name: "claude", kind: "anthropic", models: ["claude-*"] });
  const second = makeUpstream({ name: "second", kind: "anthropic", models: ["claude-*"] });
  const config = { upstreams: [gpt, claude, second], defaultModel: null };
  const reversed = { upstreams: [claude, gpt], defaultModel: null };

  it.each([
    ["claude-1", "messages", config, "claude"],
    ["claude-1", "chat", config, "gpt"],
    ["claude-1", "chat", reversed, "gpt"],
    ["claude-1", null, config, "gpt"],
    ["claude-1", null, reversed, "claude"],
    ["second/claude-1", "messages", config, "second"],
  ] as const)("%s at %s means the first upstream that has the endpoint", (model, endpoint, among, upstream) => {
    expect(targetOf(model, rules, among, endpoint)).toMatchObject({
      ok: true,
      target: { upstream, model: "claude-1" },
    });
  });

  it("goes there also from where names are resolved without an endpoint", () => {
    expect(nameAtEndpoint("claude-1", "messages", config)).toBe("claude/claude-1");
    expect(nameAtEndpoint("claude-1", "chat", config)).toBe("claude-1");
    const routes: Route[] = [{ name: "claude-1", entries: [] }];
    expect(nameAtEndpoint("claude-1", "messages", { ...config, routes })).toBe("claude-1");
  });

  it.each([
    [
      "gpt-1",
      "messages",
      config,
      /^model: gpt-1 is served by gpt, but .*; \/v1\/messages works at claude, second: name a model of one of them, such as claude\/MODEL\. \/query and \/batch work/,
    ],
    [
      "claude/claude-1",
      "embeddings",
      config,
      /^model: claude\/claude-1 is served by claude, but .*; \/v1\/embeddings works at gpt: name a model of it, such as gpt\/MODEL/,
    ],
    ["m", "messages", { upstreams: [gpt], defaultModel: null }, /no upstream of this gateway has \/v1\/messages/],
  ] as const)("is refused as %s at %s with the upstreams that would do", (model, endpoint, among, message) => {
    const resolved = targetOf(model, rules, among, endpoint);
    if (resolved.ok) throw new Error("resolved");
    expect(resolved.reason).toMatchObject({
      reason: "invalid_request",
      param: "model",
      message: expect.stringMatching(message),
    });
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
