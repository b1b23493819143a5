import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../cli/commands.ts";
import { findCredential } from "../../../cli/credential.ts";
import { DEV_VARS } from "../../../cli/places.ts";

const files: Record<string, string> = {
  [DEV_VARS]: "ADMIN_KEY=clone\n",
  first: "ADMIN_KEY=first\nFANOUT_TOKEN=fo-run-first\n",
  second: "ADMIN_KEY='second'\n",
  token: "fo-run-bare\n",
  key: "bare-key\n",
  broken: "two words",
};
const read = (path: string) => files[path] ?? null;
const EITHER = ["FANOUT_TOKEN", "ADMIN_KEY"] as const;

describe("the credential of a command", () => {
  it.each([
    ["a flag before the environment", { tokenFile: "token" }, { FANOUT_TOKEN: "env" }, "fo-run-bare", "token"],
    ["the environment before a file", { envFiles: ["first"] }, { ADMIN_KEY: " env\n" }, "env", "ADMIN_KEY"],
    ["a run's token before the operator's key", {}, { ADMIN_KEY: "k", FANOUT_TOKEN: "t" }, "t", "FANOUT_TOKEN"],
    ["the last of several files", { envFiles: ["first", "second"] }, {}, "second", "ADMIN_KEY in second"],
    ["a file that is named before .dev.vars", { envFiles: ["first"] }, {}, "fo-run-first", "FANOUT_TOKEN in first"],
    [".dev.vars at the end", {}, { FANOUT_TOKEN: "" }, "clone", "ADMIN_KEY in .dev.vars"],
  ])("is of %s", (_, asked, env, value, from) => {
    expect(findCredential({ names: EITHER, ...asked }, { env, read })).toMatchObject({ value, from });
  });

  it("tells a run's token from the operator's key, whatever it is found in", () => {
    const found = (tokenFile: string) => findCredential({ names: EITHER, tokenFile }, { env: {}, read });
    expect([found("token"), found("key")]).toMatchObject([{ isRunToken: true }, { isRunToken: false }]);
  });

  it.each([
    [{ tokenFile: "absent" }, {}, "Cannot read the token file absent."],
    [{ envFiles: ["absent"] }, {}, "Cannot read the env file absent."],
    [{ tokenFile: "broken" }, {}, /^The credential from broken is empty or contains a character/],
    [{}, { FANOUT_TOKEN: "a b" }, /^The credential from FANOUT_TOKEN is empty or contains a character/],
  ])("of %j and %j is refused with its place and without its value", (asked, env, message) => {
    const refused = findCredential({ names: EITHER, ...asked }, { env, read });
    expect(refused).toMatch(message);
    expect(refused).not.toMatch(/a b|two words/);
  });

  const needs: [string, string[], string][] = [
    ["run", [import.meta.filename, "--budget", "1"], "FANOUT_TOKEN or ADMIN_KEY"],
    ["batch", ["in.txt", "-o", "out.jsonl"], "FANOUT_TOKEN"],
    ["watch", ["run_0123456789", "--json"], "FANOUT_TOKEN or ADMIN_KEY"],
    ["runs", [], "ADMIN_KEY"],
    ["top", ["--once"], "ADMIN_KEY"],
    ["trace", ["run_0123456789"], "FANOUT_TOKEN or ADMIN_KEY"],
    ["cassette", ["ls"], "ADMIN_KEY"],
  ];
  it.each(needs)("is missed by fanout %s in the same sentence as by all commands", async (name, args, names) => {
    const command = await COMMANDS[name]?.load();
    const writes = { stdout: () => undefined, stderr: () => undefined, columns: () => 80 };
    const surroundings = {
      ...writes,
      isLive: false,
      isScreen: false,
      env: {},
      read: () => null,
      signal: AbortSignal.abort(),
    };
    if (command === undefined) throw new Error(`no command ${name}`);
    await expect(command(args, surroundings)).rejects.toThrow(
      new RegExp(
        `^No credential: ${names} is set neither in the environment nor in \\.dev\\.vars\\. Set ${names.split(" ")[0]} to `,
      ),
    );
  });

  it("is asked for by every command", () => {
    expect(needs.map(([name]) => name).toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
  });
});
