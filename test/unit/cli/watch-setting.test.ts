import { describe, expect, it } from "vitest";
import { settingOf } from "../../../cli/watch/setting.ts";

const env = { FANOUT_TOKEN: "token" };
const nothing = () => null;

describe("settingOf", () => {
  it("follows the run named, on this machine's gateway", () => {
    expect(settingOf(["run_1"], { env, read: nothing })).toEqual({
      gateway: {
        url: "http://127.0.0.1:8787",
        credential: { value: "token", name: "FANOUT_TOKEN", from: "FANOUT_TOKEN", isRunToken: true },
      },
      runId: "run_1",
      once: false,
      plain: false,
      tree: false,
    });
  });

  it("reads its flags in any place", () => {
    const setting = settingOf(["--once", "run_1", "--plain", "--tree", "--url", "https://x.test/a/"], {
      env,
      read: nothing,
    });
    expect(setting).toMatchObject({
      gateway: { url: "https://x.test/a" },
      runId: "run_1",
      once: true,
      plain: true,
      tree: true,
    });
  });

  it("prefers --url to FANOUT_URL", () => {
    const surroundings = { env: { ...env, FANOUT_URL: "http://b.test" }, read: nothing };
    expect(settingOf([], surroundings)).toMatchObject({ gateway: { url: "http://b.test" }, runId: null });
    expect(settingOf(["--url=http://a.test:1"], surroundings)).toMatchObject({ gateway: { url: "http://a.test:1" } });
  });

  it.each([
    "http://b.test:1/a",
    "http://b.test:1/a/?x=1#y",
    "http://b.test:1/a/v1/?x=/v1",
    "http://b.test:1/a#/v1",
    "HTTP://B.test:1/a//v1//",
    "http://name:secret@b.test:1/a",
  ])("takes of %s only where it is", (url) => {
    const expected = { gateway: { url: "http://b.test:1/a" } };
    expect(settingOf(["--url", url], { env, read: nothing })).toMatchObject(expected);
    expect(settingOf([], { env: { ...env, FANOUT_URL: ` ${url}` }, read: nothing })).toMatchObject(expected);
  });

  it.each([
    [
      { FANOUT_TOKEN: "t", ADMIN_KEY: "k" },
      { value: "t", from: "FANOUT_TOKEN" },
    ],
    [
      { FANOUT_TOKEN: "", ADMIN_KEY: " k\n" },
      { value: "k", from: "ADMIN_KEY" },
    ],
    [{}, { value: "local", from: "ADMIN_KEY in .dev.vars" }],
  ])("takes of %j the credential %j", (env, credential) => {
    expect(settingOf(["run_1"], { env, read: () => 'ADMIN_KEY="local"\n' })).toMatchObject({ gateway: { credential } });
  });

  it.each([
    [["run_1", "run_2"], env, /^Expected one run id\./],
    [["--onec"], env, /^Unknown option '--onec'/],
    [["run_1", "--url", "127.0.0.1:8787"], env, /^The gateway's URL must begin with http/],
    [
      ["run_1"],
      {},
      /^No credential: FANOUT_TOKEN or ADMIN_KEY is set neither in the environment nor in \.dev\.vars\. Set FANOUT_TOKEN .* or ADMIN_KEY/,
    ],
    [["run_1"], { FANOUT_TOKEN: "a\nb" }, /^The credential from FANOUT_TOKEN is empty or contains a character/],
    [[], { ADMIN_KEY: "k" }, /^The run id is missing\./],
  ])("says what is wrong with %j", (args, env, message) => {
    expect(() => settingOf(args, { env, read: nothing })).toThrow(message);
  });
});
