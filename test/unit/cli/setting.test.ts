import { describe, expect, it } from "vitest";
import { settingOf } from "../../../cli/batch/setting.ts";

const env = { FANOUT_TOKEN: "t" };
const readFile = (path: string) => (path === "token.txt" ? " from-file\n" : null);
const read = (args: string[], surroundings: Record<string, string> = env) =>
  settingOf(args, { env: surroundings, read: readFile });

describe("settingOf", () => {
  it("needs no more than an input and an output", () => {
    expect(read(["in.jsonl", "-o", "out.jsonl"])).toEqual({
      input: { path: "in.jsonl", kind: "jsonl" },
      output: "out.jsonl",
      format: "jsonl",
      endpoint: null,
      serviceTier: null,
      defaults: {},
      server: {
        apiUrl: "http://127.0.0.1:8787/v1",
        gatewayUrl: "http://127.0.0.1:8787",
        token: "t",
        tokenFrom: "FANOUT_TOKEN",
      },
      fresh: false,
      quiet: false,
      json: false,
    });
  });

  it("takes flags in any place", () => {
    const flags = ["-q", "--json", "--model", "m", "--max-tokens=5", "--temperature", "0.5", "--system=s", "--fresh"];
    expect(read(["-o", "o.csv", ...flags, "in.TXT", "--endpoint", "/v1/responses"])).toMatchObject({
      input: { kind: "text" },
      format: "csv",
      endpoint: "/v1/responses",
      defaults: { model: "m", max_tokens: 5, temperature: 0.5, system: "s" },
      fresh: true,
      quiet: true,
      json: true,
    });
  });

  it("lets --from and --format win over names", () => {
    expect(read(["in.txt", "-o", "o.csv", "--from", "csv", "--format", "text"])).toMatchObject({
      input: { kind: "csv" },
      format: "text",
    });
    expect(read(["-", "--from", "jsonl", "-o", "o", "--raw"])).toMatchObject({
      input: { path: "-", kind: "jsonl" },
      format: "raw",
    });
  });

  it.each([
    [{ FANOUT_URL: "https://g.test/", FANOUT_TOKEN: "t" }, [], "https://g.test/v1", "FANOUT_TOKEN"],
    [{ FANOUT_URL: "https://g.test/v1", FANOUT_TOKEN: "t" }, [], "https://g.test/v1", "FANOUT_TOKEN"],
    [{ OPENAI_BASE_URL: "https://o.test/v2/", OPENAI_API_KEY: "k" }, [], "https://o.test/v2", "OPENAI_API_KEY"],
    [
      { OPENAI_BASE_URL: "https://o.test/v1", OPENAI_API_KEY: "k", FANOUT_TOKEN: "t" },
      [],
      "http://127.0.0.1:8787/v1",
      "FANOUT_TOKEN",
    ],
    [{ OPENAI_API_KEY: "k" }, ["--url", "https://u.test"], "https://u.test/v1", "OPENAI_API_KEY"],
    [{ FANOUT_TOKEN: "t" }, ["--token-file", "token.txt"], "http://127.0.0.1:8787/v1", "token.txt"],
  ])("with %j and %j goes to %s with %s", (surroundings, more, apiUrl, tokenFrom) => {
    expect(read(["in.txt", "-o", "o", ...more], surroundings)).toMatchObject({ server: { apiUrl, tokenFrom } });
  });

  it.each([
    [{}, "FANOUT_TOKEN"],
    [{ OPENAI_API_KEY: "k" }, "FANOUT_TOKEN"],
    [{ FANOUT_URL: "http://g.test", OPENAI_API_KEY: "k" }, "FANOUT_TOKEN"],
    [{ OPENAI_BASE_URL: "http://o.test/v1" }, "OPENAI_API_KEY"],
  ])("sends no key to a place that it is not for: %j asks for %s", (surroundings, name) => {
    expect(() => read(["in.txt", "-o", "o"], surroundings)).toThrow(
      new RegExp(`^No credential: ${name} is set neither in the environment nor in .dev.vars. Set ${name}`),
    );
  });

  it.each([
    [["in.txt"], /^The output file is missing\./],
    [["-o", "o"], /^The input file is missing\./],
    [["a.txt", "b.txt", "-o", "o"], /^Expected one input file/],
    [["in.txt", "-o", "-"], /^The output must be a file/],
    [["-", "-o", "o"], /^The format of standard input is not known\. Add --from/],
    [["in", "-o", "o"], /^The format of the input is not known from its name/],
    [["in.txt", "-o", "o", "--from", "xml"], /^--from must be one of: jsonl, text, csv\./],
    [["in.txt", "-o", "o", "--raw", "--format", "csv"], /^Use either --raw or --format/],
    [["in.txt", "-o", "o", "--service-tier", "flex"], /^--service-tier must be one of: batch\./],
    [["in.txt", "-o", "o", "--endpoint", "/v1/x"], /^--endpoint must be one of/],
    [["in.txt", "-o", "o", "--max-tokens", "0"], /^--max-tokens must be/],
    [["in.txt", "-o", "o", "--temperature", "hot"], /^--temperature must be/],
    [["in.txt", "-o", "o", "--onec"], /^Unknown option '--onec'/],
    [["in.txt", "--cancel", "-o", "o"], /^--cancel accepts only -o/],
    [["in.txt", "-o", "o", "--url", "ftp://x"], /must begin with http/],
    [["in.txt", "-o", "o", "--url", "http://u:p@x"], /must not contain a password/],
    [["in.txt", "-o", "o", "--token-file", "none"], /^Cannot read the token file/],
  ])("says what is wrong with %j", (args, message) => {
    expect(() => read(args)).toThrow(message);
  });

  it("reads what asks for help, whatever else is missing", () => {
    expect(read(["--help"], {})).toBe("help");
  });
});
