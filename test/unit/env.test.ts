import { describe, expect, it } from "vitest";
import { configOf, parseConfig } from "../../src/env.ts";
import type { Upstream } from "../../src/providers/config/types.ts";

const openai = (fields: Record<string, unknown> = {}) => ({
  UPSTREAMS: { acme: { kind: "openai", base_url: "https://acme.test/v1", ...fields } },
});

function upstreamOf(vars: Record<string, unknown>): Upstream {
  const parsed = parseConfig(vars);
  const upstream = parsed.ok ? parsed.config.upstreams[0] : undefined;
  if (upstream === undefined) throw new Error(JSON.stringify(parsed));
  return upstream;
}

function refusalOf(vars: Record<string, unknown>): { variable: string; message: string } {
  const parsed = parseConfig(vars);
  if (parsed.ok || parsed.reason.reason !== "misconfigured") throw new Error("was not refused as misconfigured");
  return parsed.reason;
}

describe("parseConfig", () => {
  it("reads keys and the default model, and takes empty ones for not set", () => {
    const set = parseConfig({ ...openai(), ADMIN_KEY: "a", SIGNING_KEY: "s", DEFAULT_MODEL: "m" });
    expect(set).toMatchObject({ ok: true, config: { adminKey: "a", signingKey: "s", defaultModel: "m" } });
    const empty = parseConfig({ ...openai(), ADMIN_KEY: "", SIGNING_KEY: "" });
    expect(empty).toMatchObject({ ok: true, config: { adminKey: null, signingKey: null, defaultModel: null } });
  });

  it.each([{}, { UPSTREAMS: "" }])("serves the simulated provider where no upstream is set: %j", (vars) => {
    const parsed = parseConfig({ ...vars, ADMIN_KEY: "a" });
    expect(parsed).toMatchObject({ ok: true, config: { defaultModel: "sim/echo", upstreams: [{ name: "sim" }] } });
    expect(parseConfig({ ...vars, DEFAULT_MODEL: "sim/names" })).toMatchObject({
      config: { defaultModel: "sim/names" },
    });
  });

  it("keeps data in a jurisdiction that there is, and by default in none", () => {
    expect(parseConfig({ JURISDICTION: "eu" })).toMatchObject({ config: { jurisdiction: "eu" } });
    for (const value of [undefined, ""])
      expect(parseConfig({ JURISDICTION: value })).toMatchObject({ config: { jurisdiction: null } });
    expect(refusalOf({ JURISDICTION: "moon" })).toMatchObject({ variable: "JURISDICTION" });
  });

  it("lets Workers of the account open runs where it is told to, and by default not", () => {
    const allows = (value: unknown) => parseConfig({ SERVICE_BINDINGS: value });
    for (const value of ["1", 1]) expect(allows(value)).toMatchObject({ config: { serviceBindings: true } });
    for (const value of ["0", "", undefined])
      expect(allows(value)).toMatchObject({ config: { serviceBindings: false } });
    expect(refusalOf({ SERVICE_BINDINGS: "yes" })).toMatchObject({
      variable: "SERVICE_BINDINGS",
      message: "must be 1 or 0",
    });
  });

  it("adds neither the simulated provider nor its model to configured upstreams", () => {
    const { UPSTREAMS } = openai();
    for (const vars of [openai(), { UPSTREAMS_1: UPSTREAMS }]) {
      expect(parseConfig(vars)).toMatchObject({
        ok: true,
        config: { defaultModel: null, upstreams: [{ name: "acme" }] },
      });
    }
  });

  it("refuses a key that is not text, naming it", () => {
    expect(refusalOf({ ...openai(), ADMIN_KEY: 7 }).variable).toBe("ADMIN_KEY");
  });

  it("fills what an upstream leaves out", () => {
    expect(upstreamOf(openai())).toEqual({
      name: "acme",
      kind: "openai",
      baseUrl: "https://acme.test/v1",
      apiKey: null,
      headers: {},
      models: ["*"],
      maxInFlight: 4_096,
      timeoutMs: 600_000,
      maxAttempts: 3,
      errorsCost: "free",
      aggregate: "auto",
      abortCost: "reservation",
      promptCache: "auto",
      streamUsage: "auto",
      adaptive: { mode: "aimd" },
      batch: { pollMs: 60_000, marginMs: null },
      capField: "max_tokens",
      allowParams: [],
      bounds: { tokensPerByte: 1, mediaTokensMax: null, fixedTokens: 128, toolsTokens: 1_024, learnsTemplate: true },
      prices: [],
    });
  });

  it("reads every field", () => {
    const upstream = upstreamOf({
      ...openai({
        base_url: "https://acme.test/v1//",
        api_key: "secret:ACME_KEY",
        models: ["gpt-*"],
        max_in_flight: 4,
        timeout_ms: 1_000,
        max_attempts: 1,
        headers: { "X-Team": "a", "x-token": "secret:ACME_TOKEN" },
        cap_field: "max_completion_tokens",
      }),
      ACME_KEY: "k",
      ACME_TOKEN: "t",
    });
    expect(upstream).toMatchObject({
      baseUrl: "https://acme.test/v1",
      apiKey: "k",
      models: ["gpt-*"],
      maxInFlight: 4,
      timeoutMs: 1_000,
      maxAttempts: 1,
      headers: { "x-team": "a", "x-token": "t" },
      capField: "max_completion_tokens",
      allowParams: [],
    });
  });

  it("takes UPSTREAMS as JSON text too, and keeps the order listed", () => {
    const text = '{"b":{"kind":"simulated"},"a":{"kind":"openai","base_url":"http://127.0.0.1:1/v1"}}';
    const parsed = parseConfig({ UPSTREAMS: text });
    expect(parsed.ok && parsed.config.upstreams.map(({ name }) => name)).toEqual(["b", "a"]);
  });

  it("sends OpenAI itself max_completion_tokens, unless configured otherwise", () => {
    expect(upstreamOf(openai({ base_url: "https://api.openai.com/v1" })).capField).toBe("max_completion_tokens");
    const told = openai({ base_url: "https://api.openai.com/v1", cap_field: "max_tokens" });
    expect(upstreamOf(told).capField).toBe("max_tokens");
  });

  it("reads prices as integer pico-USD per token, rounded up, cached input priced as input by default", () => {
    const prices = { "gpt-x": { input: 0.0375, cached_input: 0.01, output: 4.03 }, "*": { input: 1e-7, output: 0 } };
    expect(upstreamOf(openai({ prices })).prices).toEqual([
      { pattern: "gpt-x", price: { inputPicoUsd: 37_500, cachedInputPicoUsd: 10_000, outputPicoUsd: 4_030_000 } },
      { pattern: "*", price: { inputPicoUsd: 1, cachedInputPicoUsd: 1, outputPicoUsd: 0 } },
    ]);
  });

  it("prices a simulated upstream like a small model, and matches only its own models by plain name", () => {
    const upstream = upstreamOf({ UPSTREAMS: { sim: { kind: "simulated" } } });
    expect(upstream.prices).toEqual([
      { pattern: "*", price: { inputPicoUsd: 150_000, cachedInputPicoUsd: 150_000, outputPicoUsd: 600_000 } },
    ]);
    expect(upstream.models).toContain("echo");
    expect(upstream.models).not.toContain("*");
  });

  it.each([
    ["UPSTREAMS", { UPSTREAMS: {} }],
    ["UPSTREAMS", { UPSTREAMS: [] }],
    ["UPSTREAMS", { UPSTREAMS: "{" }],
    ["UPSTREAMS", { UPSTREAMS: "null" }],
    ["UPSTREAMS.Acme", { UPSTREAMS: { Acme: { kind: "simulated" } } }],
    ["UPSTREAMS._a", { UPSTREAMS: { _a: { kind: "simulated" } } }],
    ["UPSTREAMS.a/b", { UPSTREAMS: { "a/b": { kind: "simulated" } } }],
    ["UPSTREAMS.acme", { UPSTREAMS: { acme: "simulated" } }],
    ["UPSTREAMS.acme.kind", { UPSTREAMS: { acme: {} } }],
    ["UPSTREAMS.acme.kind", { UPSTREAMS: { acme: { kind: "gemini", base_url: "https://a.test" } } }],
    ["UPSTREAMS.acme.base_url", { UPSTREAMS: { acme: { kind: "simulated", base_url: "https://a.test" } } }],
    ["UPSTREAMS.acme.base_url", { UPSTREAMS: { acme: { kind: "openai" } } }],
    ["UPSTREAMS.acme.base_url", openai({ base_url: "acme.test/v1" })],
    ["UPSTREAMS.acme.base_url", openai({ base_url: "ftp://acme.test" })],
    ["UPSTREAMS.acme.base_url", openai({ base_url: "https://user:pw@acme.test" })],
    ["UPSTREAMS.acme.base_url", openai({ base_url: "https://acme.test/v1?key=1" })],
    ["UPSTREAMS.acme.base_url", openai({ base_url: "https://acme.test/v1/chat/completions" })],
    ["UPSTREAMS.acme.api_key", openai({ api_key: 7 })],
    ["UPSTREAMS.acme.models", openai({ models: "gpt-*" })],
    ["UPSTREAMS.acme.models.1", openai({ models: ["a", ""] })],
    ["UPSTREAMS.acme.max_in_flght", openai({ max_in_flght: 1 })],
    ["UPSTREAMS.acme.max_in_flight", openai({ max_in_flight: 0 })],
    ["UPSTREAMS.acme.max_in_flight", openai({ max_in_flight: 10_001 })],
    ["UPSTREAMS.acme.timeout_ms", openai({ timeout_ms: 0 })],
    ["UPSTREAMS.acme.timeout_ms", openai({ timeout_ms: 3_600_001 })],
    ["UPSTREAMS.acme.timeout_ms", openai({ timeout_ms: 1.5 })],
    ["UPSTREAMS.acme.max_attempts", openai({ max_attempts: 11 })],
    ["UPSTREAMS.acme.max_attempts", openai({ max_attempts: "3" })],
    ["UPSTREAMS.acme.errors_cost", openai({ errors_cost: "nothing" })],
    ["UPSTREAMS.acme.errors_cost", openai({ errors_cost: 0.05 })],
    ["UPSTREAMS.acme.headers.host", openai({ headers: { host: "b.test" } })],
    ["UPSTREAMS.acme.headers.x y", openai({ headers: { "x y": "1" } })],
    ["UPSTREAMS.acme.headers.x-a", openai({ headers: { "x-a": "1\n2" } })],
    ["UPSTREAMS.acme.headers.authorization", openai({ api_key: "k", headers: { authorization: "Basic x" } })],
    ["UPSTREAMS.acme.prompt_tokens_per_byte", openai({ prompt_tokens_per_byte: 0 })],
    ["UPSTREAMS.acme.prompt_tokens_per_byte", openai({ prompt_tokens_per_byte: 1.01 })],
    ["UPSTREAMS.acme.prompt_tokens_per_byte", openai({ prompt_tokens_per_byte: "0.5" })],
    ["UPSTREAMS.acme.media_tokens_max", openai({ media_tokens_max: 0 })],
    ["UPSTREAMS.acme.media_tokens_max", openai({ media_tokens_max: 10_000_001 })],
    ["UPSTREAMS.acme.cap_field", openai({ cap_field: "cap" })],
    ["UPSTREAMS.acme.prices.m.input", openai({ prices: { m: { input: -1, output: 1 } } })],
    ["UPSTREAMS.acme.prices.m.output", openai({ prices: { m: { input: 1 } } })],
    ["UPSTREAMS.acme.prices.m.output", openai({ prices: { m: { input: 1, output: Number.NaN } } })],
    ["UPSTREAMS.acme.prices.m.output", openai({ prices: { m: { input: 1, output: 10_000.01 } } })],
    ["UPSTREAMS.acme.prices.m.cached", openai({ prices: { m: { input: 1, output: 1, cached: 1 } } })],
  ])("names %s when it is wrong: %j", (variable, vars) => {
    const refusal = refusalOf(vars);
    expect(refusal.variable).toBe(variable);
    expect(refusal.message).not.toBe("");
  });

  it("accepts the largest limits and price", () => {
    const prices = { m: { input: 10_000, output: 10_000 } };
    const upstream = upstreamOf(openai({ max_in_flight: 10_000, timeout_ms: 3_600_000, max_attempts: 10, prices }));
    expect(upstream).toMatchObject({ maxInFlight: 10_000, timeoutMs: 3_600_000, maxAttempts: 10 });
  });

  it("reads what errors cost", () => {
    expect(upstreamOf(openai({})).errorsCost).toBe("free");
    expect(upstreamOf(openai({ errors_cost: "reservation" })).errorsCost).toBe("reservation");
  });

  it("names both the field and the secret that is not set", () => {
    const refusal = refusalOf(openai({ api_key: "secret:ACME_KEY" }));
    expect(refusal.variable).toBe("UPSTREAMS.acme.api_key");
    expect(refusal.message).toContain("ACME_KEY");
    expect(refusalOf({ ...openai({ api_key: "secret:ACME_KEY" }), ACME_KEY: "" }).message).toContain("not set");
  });

  it.each([
    ["a key with a line break", { ...openai({ api_key: "secret:K" }), K: "hunter2\n" }],
    ["a literal key beside a wrong field", openai({ api_key: "hunter2", timeout_ms: -1 })],
    ["credentials in the URL", openai({ base_url: "https://hunter2:hunter2@a.test" })],
    ["JSON text that breaks off", { UPSTREAMS: '{"a":{"kind":"openai","api_key":"hunter2"' }],
    ["JSON text with a stray word", { UPSTREAMS: '{"a":{"api_key": hunter2 }}' }],
    ["a key in the place of an upstream", { UPSTREAMS: { a: "hunter2" } }],
    ["a key in the place of a kind", { UPSTREAMS: { a: { kind: "hunter2" } } }],
    ["a header with a forbidden character", openai({ headers: { "x-key": "hunter2\u0000" } })],
  ])("never shows a secret: %s", (_, vars) => {
    expect(JSON.stringify(refusalOf(vars))).not.toContain("hunter2");
  });
});

describe("budgets in the configuration", () => {
  const budgetsOf = (vars: Record<string, unknown>) => {
    const parsed = parseConfig({ ...openai(), ...vars });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
    return parsed.config.budgets;
  };
  const names = ["DEFAULT_BUDGET_USD", "MAX_BUDGET_USD", "ROOT_BUDGET_USD_PER_DAY"];

  it("are in nano-USD, as numbers or as text; what is empty or left out is none", () => {
    expect(budgetsOf({ DEFAULT_BUDGET_USD: 0.5, MAX_BUDGET_USD: "2", ROOT_BUDGET_USD_PER_DAY: 0 })).toEqual({
      defaultNanoUsd: 500_000_000,
      maxNanoUsd: 2_000_000_000,
      rootNanoUsdPerDay: 0,
    });
    const none = { defaultNanoUsd: null, maxNanoUsd: null, rootNanoUsdPerDay: null };
    expect(budgetsOf({})).toEqual(none);
    expect(budgetsOf(Object.fromEntries(names.map((name) => [name, ""])))).toEqual(none);
  });

  it("may be a million dollars, and are rounded down to whole nano-USD", () => {
    expect(budgetsOf({ MAX_BUDGET_USD: 1_000_000 }).maxNanoUsd).toBe(1e15);
    expect(budgetsOf({ MAX_BUDGET_USD: 1.9e-9 }).maxNanoUsd).toBe(1);
  });

  it.each(
    names.flatMap((name) =>
      [-1, Number.NaN, "much", "Infinity", 1_000_001, true, {}, " "].map((value) => [name, value] as const),
    ),
  )("names %s when it is %j", (name, value) => {
    expect(refusalOf({ ...openai(), [name]: value })).toMatchObject({ variable: name });
  });
});

describe("hosts of tools in the configuration", () => {
  const hostsOf = (TOOL_HOSTS: unknown) => {
    const parsed = parseConfig({ ...openai(), TOOL_HOSTS });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
    return parsed.config.toolHosts;
  };

  it("are listed with commas, with a port or without", () => {
    const [name, address] = [
      { host: "tools.example.com", port: null },
      { host: "127.0.0.1", port: 9_000 },
    ];
    expect(hostsOf("Tools.example.com, 127.0.0.1:9000")).toEqual([name, address]);
  });

  it("are none where the variable is not set, or an emptied line", () => {
    expect([hostsOf(undefined), hostsOf("")]).toEqual([[], []]);
  });

  it.each([",", "https://tools.example.com", "*.example.com", 9_000, ["a.example.com"]])(
    "are refused by the variable's name as %j, which would otherwise list nothing",
    (TOOL_HOSTS) => expect(refusalOf({ ...openai(), TOOL_HOSTS })).toMatchObject({ variable: "TOOL_HOSTS" }),
  );
});

describe("configOf", () => {
  it("leases credit unless it is turned off", () => {
    const leased = (LEASED_CREDIT?: unknown) => {
      const parsed = parseConfig({ ...openai(), LEASED_CREDIT });
      return parsed.ok && parsed.config.leasedCredit;
    };
    expect([leased(), leased("on"), leased("off"), leased("")]).toEqual([true, true, false, true]);
    for (const wrong of ["no", "1", false])
      expect(refusalOf({ ...openai(), LEASED_CREDIT: wrong })).toMatchObject({ variable: "LEASED_CREDIT" });
  });

  it("reads how many fetches may wait for headers: six unless configured, as on Cloudflare", () => {
    const waiting = (WAITING_FETCHES_MAX?: unknown) => {
      const parsed = parseConfig({ ...openai(), WAITING_FETCHES_MAX });
      return parsed.ok ? parsed.config.waitingFetchesMax : null;
    };
    expect([waiting(), waiting(""), waiting(1), waiting("512")]).toEqual([6, 6, 1, 512]);
    for (const wrong of [0, 513, 1.5, " ", "many", -1]) {
      expect(refusalOf({ ...openai(), WAITING_FETCHES_MAX: wrong })).toMatchObject({ variable: "WAITING_FETCHES_MAX" });
    }
  });

  it("reads who executes groups without a client: Workflow instances unless configured, if they are bound", () => {
    const may = (ASYNC_EXECUTOR?: unknown) => {
      const parsed = parseConfig({ ...openai(), ASYNC_EXECUTOR });
      return parsed.ok ? parsed.config.mayUseWorkflows : null;
    };
    expect([may(), may(""), may("workflow"), may("lanes")]).toEqual([true, true, true, false]);
    for (const wrong of ["Workflow", "lane", 1]) {
      expect(refusalOf({ ...openai(), ASYNC_EXECUTOR: wrong })).toMatchObject({ variable: "ASYNC_EXECUTOR" });
    }
  });

  it("parses one vars object once", () => {
    const vars = openai();
    expect(configOf(vars)).toBe(configOf(vars));
    expect(configOf(openai())).not.toBe(configOf(vars));
  });
});
