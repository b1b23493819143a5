/** `fanout cassette`: a program is recorded and replayed by the command, and its tape is a file. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Ended, Folder } from "../unit/cli/command.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

const PROGRAM = `
const [model, ...prompts] = process.argv.slice(2);
const headers = { authorization: \`Bearer \${process.env.FANOUT_TOKEN}\`, "content-type": "application/json" };
const answer = await fetch(\`\${process.env.FANOUT_URL}/batch\`, { method: "POST", headers, body: JSON.stringify({ model, prompts }) });
const { results } = await answer.json();
console.log(JSON.stringify({ results, key: process.env.ADMIN_KEY ?? null, openai: process.env.OPENAI_API_KEY === process.env.FANOUT_TOKEN }));
`;

let gateway: Gateway;
beforeAll(async () => {
  const cassette = (mode: string, tape: string) => ({ kind: "cassette", mode, tape, upstream: { kind: "simulated" } });
  const UPSTREAMS = {
    rec: cassette("record", "demo"),
    play: cassette("replay", "demo"),
    other: cassette("replay", "other"),
  };
  gateway = await startGateway({ vars: { UPSTREAMS } });
});
afterAll(() => gateway.stop());

let folder: Folder;
beforeEach(async () => {
  folder = await Folder.create();
  await folder.write("program.mjs", PROGRAM);
});
afterEach(() => folder.remove());

const fanout = (...args: string[]): Promise<Ended> =>
  folder.fanout(["cassette", ...args], { env: { FANOUT_URL: gateway.url, ADMIN_KEY: gateway.adminKey } });
const program = (model: string, ...prompts: string[]): string[] => [
  "--",
  process.execPath,
  "program.mjs",
  model,
  ...prompts,
];
const record = (file: string, ...prompts: string[]): Promise<Ended> =>
  fanout("record", file, "--budget", "1", ...program("rec/echo", ...prompts));
const replay = (file: string, ...prompts: string[]): Promise<Ended> =>
  fanout("replay", file, "--upstream", "play", ...program("play/echo", ...prompts));
const printed = z.object({ results: z.array(z.string()), key: z.null(), openai: z.literal(true) });

describe("fanout cassette", () => {
  it(
    "records a program into a file, and replays it; the program gets a run's token and never the operator's key",
    { tags: ["slow"] },
    async () => {
      const recorded = await record("demo.jsonl", "one", "two");
      expect([recorded.status, recorded.stderr]).toEqual([
        0,
        expect.stringMatching(/^demo\.jsonl: 2 exchanges · <?\$[\d.]+ · run_/),
      ]);
      const { results } = printed.parse(JSON.parse(recorded.stdout));
      await fanout("clear", "demo");
      const replayed = await replay("demo.jsonl", "two", "one");
      expect([replayed.status, replayed.stderr]).toEqual([
        0,
        expect.stringMatching(/^2 calls · 0 not on the tape · run_/),
      ]);
      expect(printed.parse(JSON.parse(replayed.stdout)).results).toEqual(results.toReversed());
    },
  );

  it(
    "fails where a replayed program asks something new, also if the program hides it, and says what is different",
    { tags: ["slow"] },
    async () => {
      await record("demo.jsonl", "Who won in 1999?");
      const ended = await replay("demo.jsonl", "Who won in 2001?");
      expect(ended.status).toBe(1);
      expect(ended.stderr).toContain(
        'body.messages[0].content: recorded "Who won in 1999?", requested "Who won in 2001?"',
      );
      expect(ended.stderr).toContain("1 calls · 1 not on the tape");
    },
  );

  it("empties the tape before it records, and ends with the program's status", { tags: ["slow"] }, async () => {
    await record("demo.jsonl", "one");
    await record("demo.jsonl", "two");
    expect(await folder.lines("demo.jsonl")).toHaveLength(1);
    const failed = await fanout("record", "x.jsonl", "--budget", "1", "--", process.execPath, "-e", "process.exit(7)");
    expect(failed.status).toBe(7);
  });

  it("lists, shows, exports, loads and compares tapes", { tags: ["slow"] }, async () => {
    await record("demo.jsonl", "one", "two");
    const listed = await fanout("ls");
    expect(listed.stdout).toMatch(/^demo +rec: record, play: replay +2 /m);
    expect((await fanout("show", "demo")).stdout).toMatch(/^ +1 +call +echo +200 +one$/m);
    expect((await fanout("show", "demo", "2")).stdout).toContain('"content": "two"');
    expect((await fanout("show", "demo", "3")).stderr).toContain("demo has no exchange 3: it has 2.");
    await fanout("export", "demo", "-o", "copy.jsonl");
    expect(await folder.read("copy.jsonl")).toBe(await folder.read("demo.jsonl"));
    expect((await fanout("load", "copy.jsonl", "other")).stderr).toBe("other: 2 exchanges\n");
    expect(await fanout("diff", "demo", "other")).toMatchObject({ status: 0, stdout: "" });
    await folder.write("copy.jsonl", (await folder.read("copy.jsonl")).replaceAll('"two"', '"2"'));
    const { status, stdout } = await fanout("diff", "demo", "copy.jsonl");
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^only demo has 2: "two"\n {2}nearest in copy\.jsonl: \d\n/),
    ]);
  });

  it("says what is missing: a budget, a program, an upstream, a file, a tape", { tags: ["slow"] }, async () => {
    await folder.write("demo.jsonl", "");
    const said = async (...args: string[]): Promise<string> => {
      const { status, stderr } = await fanout(...args);
      expect(status).toBe(1);
      return stderr;
    };
    expect(await said("record", "x.jsonl", ...program("rec/echo"))).toContain("Set a budget");
    expect(await said("replay", "x.jsonl")).toContain("Expected a file and a program");
    expect(await said("replay", "demo.jsonl", ...program("play/echo"))).toContain("--upstream play, other");
    expect(await said("replay", "demo.jsonl", "--upstream", "rec", ...program("x"))).toContain(
      "UPSTREAMS has no upstream rec of the kind cassette with the mode replay",
    );
    expect(await said("replay", "none.jsonl", "--upstream", "play", ...program("x"))).toContain(
      "No such file: none.jsonl.",
    );
    expect(await said("replay", "demo.jsonl", "--upstream", "play", "--", "./no-program")).toContain(
      "Cannot start ./no-program",
    );
    expect(await said("show", "../demo")).toContain("cassette ../demo not found");
    expect(await said("nothing")).toContain("Unknown command: cassette nothing");
    expect((await fanout("--help")).stdout).toContain("Usage: fanout cassette COMMAND");
  });
});
