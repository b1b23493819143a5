import { describe, expect, it } from "vitest";
import { demoSetting } from "../../../scripts/demo-provider.ts";

const openaiUpstream = (env: Record<string, string>) => {
  const setting = demoSetting(env);
  if (typeof setting === "string") throw new Error(setting);
  const upstreams: unknown = JSON.parse(setting.vars["UPSTREAMS"] ?? "null");
  return upstreams;
};

describe("demoSetting", () => {
  it("asks the simulated model where nothing is set", () => {
    expect(demoSetting({})).toEqual({ vars: {}, model: null });
  });

  it("spends nothing because a key is in the environment", () => {
    expect(demoSetting({ OPENAI_API_KEY: "k" })).toEqual({ vars: {}, model: null });
  });

  it("asks another simulated behaviour by name", () => {
    expect(demoSetting({ FANOUT_MODEL: "sim/echo" })).toEqual({ vars: {}, model: "sim/echo" });
  });

  it("configures OpenAI when a model and a key are set, the key as a secret", () => {
    const env = { FANOUT_MODEL: "openai/gpt-4o-mini", OPENAI_API_KEY: "k" };
    expect(demoSetting(env)).toMatchObject({ model: "openai/gpt-4o-mini", vars: { OPENAI_API_KEY: "k" } });
    expect(openaiUpstream(env)).toEqual({
      openai: {
        kind: "openai",
        base_url: "https://api.openai.com/v1",
        api_key: "secret:OPENAI_API_KEY",
        models: ["gpt-4o-mini"],
      },
    });
  });

  it("takes another endpoint and another price from the environment", () => {
    const env = {
      FANOUT_MODEL: "openai/new/model",
      OPENAI_API_KEY: "k",
      OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
      FANOUT_PRICE: "1.25,10",
    };
    expect(openaiUpstream(env)).toMatchObject({
      openai: { base_url: "http://127.0.0.1:9/v1", prices: { "new/model": { input: 1.25, output: 10 } } },
    });
  });

  it.each([
    [{ FANOUT_MODEL: "openai/gpt-4o-mini" }, "FANOUT_MODEL=openai/gpt-4o-mini needs OPENAI_API_KEY."],
    [{ FANOUT_MODEL: "gpt-4o-mini", OPENAI_API_KEY: "k" }, "FANOUT_MODEL must be openai/<model>"],
    [{ FANOUT_MODEL: "openai/", OPENAI_API_KEY: "k" }, "FANOUT_MODEL must be openai/<model>"],
    [{ FANOUT_MODEL: "openai/unheard-of", OPENAI_API_KEY: "k" }, "Set FANOUT_PRICE=<input>,<output>"],
    [
      { FANOUT_MODEL: "openai/gpt-4o-mini", OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://127.0.0.1:9/v1" },
      "no price for gpt-4o-mini at http://127.0.0.1:9/v1",
    ],
    [{ FANOUT_MODEL: "openai/unheard-of", OPENAI_API_KEY: "k", FANOUT_PRICE: "cheap" }, "Set FANOUT_PRICE"],
  ])("says what is wrong with %j", (env, complaint) => {
    expect(demoSetting(env)).toContain(complaint);
  });
});
