import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { DEV_VARS } from "../../../cli/places.ts";
import { exportLine, tokenSetting } from "../../../scripts/token-setting.ts";

const files: Record<string, string> = {
  [DEV_VARS]: 'ADMIN_KEY="local"\n',
  other: "ADMIN_KEY=other\n",
  empty: "",
  bare: "bare-key\n",
};
const read = (file: string) => files[file] ?? null;
const setting = (args: string[], env: Record<string, string> = {}) => tokenSetting(args, { env, read });

describe("tokenSetting", () => {
  it("opens a run of ten cents at this machine's gateway, with the key that npm start wrote", () => {
    expect(setting([])).toEqual({
      url: "http://127.0.0.1:8787",
      adminKey: "local",
      run: { budget: { usd: 0.1 } },
    });
  });

  it("names the run's limits, its model and itself", () => {
    const flags = [
      "--usd",
      "2.5",
      "--calls=40",
      "--parallel",
      "0",
      "--depth",
      "2",
      "--model",
      "sim/echo",
      "--name",
      "a",
    ];
    expect(setting(flags)).toMatchObject({
      run: {
        budget: { usd: 2.5, calls: 40 },
        max_parallel: 0,
        max_depth: 2,
        default_model: "sim/echo",
        name: "a",
      },
    });
  });

  it("leaves dollars without a limit where calls are limited", () => {
    expect(setting(["--calls", "3"])).toMatchObject({ run: { budget: { calls: 3 } } });
    expect(setting(["--calls", "3"])).not.toHaveProperty("run.budget.usd");
  });

  it.each([
    [["--url", "https://a.test/b/"], { FANOUT_URL: "http://c.test", PORT: "1" }, "https://a.test/b"],
    [[], { FANOUT_URL: "http://c.test", PORT: "1" }, "http://c.test"],
    [[], { FANOUT_URL: "", PORT: "8790" }, "http://127.0.0.1:8790"],
  ])("finds the gateway by %j and %j at %s", (args, env, url) => {
    expect(setting(args, env)).toMatchObject({ url });
  });

  it.each([
    [["--token-file", "bare"], { ADMIN_KEY: "mine" }, "bare-key"],
    [["--env-file", "other"], { ADMIN_KEY: "mine" }, "mine"],
    [["--env-file", "other"], {}, "other"],
    [["--env-file", "empty"], {}, "local"],
    [[], { ADMIN_KEY: " mine\n" }, "mine"],
    [[], { ADMIN_KEY: "" }, "local"],
  ])("takes of %j and %j the key %s", (args, env, adminKey) => {
    expect(setting(args, env)).toMatchObject({ adminKey });
  });

  it.each([
    [["--usd", "ten"], /^--usd must be a number, not "ten"\.$/],
    [["--usd=-1"], /^--usd must be a number, not "-1"\.$/],
    [["--calls", "1.5"], /^--calls must be a whole number, not "1\.5"\.$/],
    [["--usb", "1"], /^Unknown option '--usb'/],
    [["1"], /^Unexpected argument '1'/],
    [["--url", "127.0.0.1:8787"], /^The gateway's URL must begin with http/],
    [["--env-file", "absent"], /^Cannot read the env file absent\.$/],
    [["--token-file", "absent"], /^Cannot read the token file absent\.$/],
  ])("says what is wrong with %j", (args, message) => {
    expect(setting(args)).toMatch(message);
  });
});

describe("exportLine", () => {
  it("is one line that sets any value in a shell, and runs nothing that a value holds", () => {
    const values = { FANOUT_URL: "http://a.test/it's $(echo here) `id`", FANOUT_TOKEN: "fo-run-a.b_c-d" };
    const line = exportLine(values);
    expect(line).toMatch(/^export FANOUT_URL='.*' FANOUT_TOKEN=fo-run-a\.b_c-d$/);
    const shown = spawnSync("sh", ["-c", `${line}\nprintf '%s\\n%s' "$FANOUT_URL" "$FANOUT_TOKEN"`], {
      encoding: "utf8",
    });
    expect(shown.stdout).toBe(`${values.FANOUT_URL}\n${values.FANOUT_TOKEN}`);
  });
});
