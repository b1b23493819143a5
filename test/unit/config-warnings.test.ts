/** A configuration that is valid and yet of no use is said to be, by variable and without a value. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../src/http/app.ts";
import { configWarnings } from "../../src/config-warnings.ts";
import { parseConfig } from "../../src/env.ts";
import { targetOf } from "../../src/providers/target.ts";

const local = (fields: Record<string, unknown> = {}) => ({
  UPSTREAMS: { local: { kind: "openai", base_url: "http://127.0.0.1:1/v1", models: ["tiny-*"], ...fields } },
});

function configOf(vars: Record<string, unknown>) {
  const parsed = parseConfig(vars);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
  return parsed.config;
}

const priced = { prices: { "*": { input: 0, output: 0 } } };

describe("the warnings of a configuration", () => {
  it.each([
    ["a default model that is served and priced", { ...local(priced), DEFAULT_MODEL: "tiny-1" }, []],
    ["no default model", local(), []],
    [
      "a default model that nothing serves",
      { ...local(priced), DEFAULT_MODEL: "secret-large" },
      ["DEFAULT_MODEL is served by no upstream"],
    ],
    ["a default model without a price", { ...local(), DEFAULT_MODEL: "tiny-1" }, ["DEFAULT_MODEL has no price"]],
    ["an upstream without models", local({ models: [] }), ["UPSTREAMS.local.models is empty"]],
    [
      "an upstream over a binding that the gateway has not",
      { UPSTREAMS: { cf: { kind: "workers-ai" } } },
      ["UPSTREAMS.cf needs the binding AI"],
    ],
    [
      "an upstream over a binding that it has",
      { UPSTREAMS: { cf: { kind: "workers-ai" } }, AI: { run: async () => new Response() } },
      [],
    ],
    [
      "a default budget above the largest",
      { ...local(), DEFAULT_BUDGET_USD: 3, MAX_BUDGET_USD: 2 },
      ["DEFAULT_BUDGET_USD is above"],
    ],
    ["a default budget that is the largest", { ...local(), DEFAULT_BUDGET_USD: 2, MAX_BUDGET_USD: 2 }, []],
  ])("with %s", (_, vars, begins) => {
    const warnings = configWarnings(configOf(vars));
    expect(warnings).toHaveLength(begins.length);
    for (const [at, begin] of begins.entries()) expect(warnings[at]).toContain(begin);
    expect(warnings.join()).not.toContain("secret");
  });

  it("are shown at GET /health to who has the operator's or the viewers' key", async () => {
    const [ADMIN_KEY, VIEW_KEY] = ["a".repeat(32), "v".repeat(32)];
    const vars = { ...local(priced), DEFAULT_MODEL: "other", ADMIN_KEY, VIEW_KEY };
    for (const key of [ADMIN_KEY, VIEW_KEY]) {
      const init = { headers: { authorization: `Bearer ${key}` } };
      const shown: unknown = await (await createApp().request("/health", init, vars)).json();
      expect(shown).toMatchObject({ status: "ok", warnings: [expect.stringContaining("DEFAULT_MODEL")] });
    }
  });

  it("are there for strangers without the name of an upstream, a route or a variable, and so is a fault", async () => {
    const ADMIN_KEY = "a".repeat(32);
    const secret = { kind: "openai", base_url: "http://u.test/v1", models: [] };
    const warned = { UPSTREAMS: { "acme-internal": secret }, ADMIN_KEY };
    const wrong = { UPSTREAMS: { "acme-internal": { kind: "magic" } }, ADMIN_KEY };
    for (const vars of [warned, wrong, { UPSTREAMS: warned.UPSTREAMS }]) {
      for (const init of [{}, { headers: { authorization: "Bearer guess" } }]) {
        const text = await (await createApp().request("/health", init, vars)).text();
        expect(text).toContain("the configuration has warnings or a fault");
        expect(text).not.toMatch(/acme|UPSTREAMS/);
      }
    }
    const fine = { ...local(priced), ADMIN_KEY };
    expect(await (await createApp().request("/health", {}, fine)).json()).toMatchObject({ warnings: [] });
  });
});

describe("a call that names no model, where nothing serves the gateway's default", () => {
  const config = configOf({ ...local(priced), DEFAULT_MODEL: "other" });
  const rules = { defaultModel: null, models: [], unpriced: "refuse" } as const;

  it("reports that the variable is wrong, not that its model is", () => {
    expect(targetOf(null, rules, config)).toMatchObject({
      ok: false,
      reason: { reason: "misconfigured", variable: "DEFAULT_MODEL" },
    });
  });

  it("reports its model if it, or its run, names that one", () => {
    const reason = { reason: "model_not_found", model: "other" };
    expect(targetOf("other", rules, config)).toMatchObject({ ok: false, reason });
    expect(targetOf(null, { ...rules, defaultModel: "other" }, config)).toMatchObject({ ok: false, reason });
  });
});
