import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serveSetting } from "../../../scripts/local/serve-setting.ts";

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-serve-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function envFile(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

describe("the setting of npm run serve", () => {
  it("needs nothing but the operator's key", () => {
    expect(serveSetting({ ADMIN_KEY: "key" }, [])).toEqual({
      host: "127.0.0.1",
      port: 8787,
      dataDir: ".data",
      adminKey: "key",
      vars: { ADMIN_KEY: "key" },
    });
  });

  it("takes host, port and folder from the environment", () => {
    const env = { ADMIN_KEY: "key", HOST: "0.0.0.0", PORT: "80", FANOUT_DATA: "/var/lib/fanout" };
    expect(serveSetting(env, [])).toMatchObject({ host: "0.0.0.0", port: 80, dataDir: "/var/lib/fanout" });
  });

  it("gives the Worker its own variables and the secrets that they refer to, and nothing else", () => {
    const upstreams = JSON.stringify({ a: { api_key: "secret:A_KEY", headers: { "x-b": "secret:B_KEY" } } });
    const env = {
      ADMIN_KEY: "key",
      UPSTREAMS: upstreams,
      A_KEY: "a",
      B_KEY: "b",
      AWS_SECRET_ACCESS_KEY: "c",
      PATH: "/bin",
    };
    expect(serveSetting(env, [])).toMatchObject({
      vars: { ADMIN_KEY: "key", UPSTREAMS: upstreams, A_KEY: "a", B_KEY: "b" },
    });
  });

  it("reads env files: the last one wins, and the environment wins over all of them", () => {
    const first = envFile("first", "ADMIN_KEY=one\nDEFAULT_MODEL=m1\nMAX_BUDGET_USD=1\n");
    const second = envFile("second", "ADMIN_KEY=two\nDEFAULT_MODEL=m2\n");
    expect(serveSetting({ DEFAULT_MODEL: "m3", MAX_BUDGET_USD: "" }, [first, second])).toMatchObject({
      vars: { ADMIN_KEY: "two", DEFAULT_MODEL: "m3", MAX_BUDGET_USD: "1" },
    });
  });

  it.each([
    ["without a key", {}, [], /^No credential: ADMIN_KEY is not set in the environment\. Set/],
    ["with an empty key", { ADMIN_KEY: "" }, [], /^No credential: ADMIN_KEY is not set in the environment\. Set/],
    ["with a port that is no number", { ADMIN_KEY: "k", PORT: "http" }, [], /^PORT must be .* not "http"\.$/],
    ["with a port out of range", { ADMIN_KEY: "k", PORT: "65536" }, [], /^PORT must be/],
    [
      "with an env file that is missing",
      { ADMIN_KEY: "k" },
      ["/nowhere/env"],
      /^The env file \/nowhere\/env does not exist\.$/,
    ],
  ])("is refused %s", (_, env, files, message) => {
    expect(serveSetting(env, files)).toMatch(message);
  });
});
