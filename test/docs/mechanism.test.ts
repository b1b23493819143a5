/** That a page which does not do what it says fails: the tests of the tests. */
import { describe, expect, it } from "vitest";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blocksOf, stepsOf } from "./blocks.ts";
import { difference } from "./expected.ts";
import { runInShell } from "./shell.ts";

const fence = "```";
const page = (...blocks: [head: string, code: string][]) =>
  blocks.map(([head, code]) => `Some words.\n\n${fence}${head}\n${code}\n${fence}\n`).join("\n");
const steps = (...blocks: [head: string, code: string][]) => stepsOf(blocksOf(page(...blocks)));

describe("a page's blocks", () => {
  it("are found with their language and line", () => {
    const blocks = blocksOf(page(["sh", "true"], ["json POST /query", "{}"]));
    expect(blocks).toEqual([
      { line: 3, language: "sh", info: "", code: "true\n" },
      { line: 9, language: "json", info: "POST /query", code: "{}\n" },
    ]);
  });

  it("may not hide from it, indented, quoted, between tildes or in a fence that never ends", () => {
    for (const head of ["  ```sh", "> ```sh", "- ```sh", "~~~sh", "```sh"]) {
      expect(() => blocksOf(`Words.\n${head}\ntrue\n`)).toThrow("a fence that no test would find");
    }
  });

  it("are run, printed, saved, sent or configure a gateway", () => {
    const kinds = steps(
      ["sh", "cat main.py"],
      ["text", "…"],
      ["python main.py", "print(1)"],
      ["sh", "python3 main.py"],
      ["json POST /batch", "{}"],
      ["json UPSTREAMS", "{}"],
      ["sh .dev.vars", "A=1"],
      ["toml wrangler.toml", "A=1"],
    ).map(({ kind }) => kind);
    expect(kinds).toEqual(["run", "file", "run", "request", "configuration", "configuration", "configuration"]);
  });

  it("are refused where nobody would know whether they work", () => {
    expect(() => steps(["cobol", "STOP RUN."])).toThrow('line 3: nobody runs a block of "cobol "');
    expect(() => steps(["", "just text"])).toThrow("nobody runs");
    expect(() => steps(["text", "printed by nothing"])).toThrow("nobody runs");
    expect(() => steps(["sh", "true"], ["text", "a"], ["text", "b"])).toThrow("nobody runs");
    expect(() => steps(["python main.py", "print(1)"], ["sh", "true"])).toThrow("no later block uses main.py");
  });
});

describe("what a block prints", () => {
  it("is compared as text, in which … is any text", () => {
    expect(difference("text", "a … c\n", "a\n b c")).toMatch("expected");
    expect(difference("text", "a … c\n", "a b c\n")).toBeNull();
    expect(difference("text", "a\n…\nz\n", "a\nb\nc\nz\n")).toBeNull();
    expect(difference("text", "a.c\n", "abc\n")).toMatch("expected");
    expect(difference("text", "a\n", "a\nb\n")).toMatch("expected");
  });

  it("is compared as JSON, which may have more fields than are shown, and no other values or elements", () => {
    const printed = '{"a":[1,{"b":"xyz","c":null}],"d":true}';
    for (const same of ['{"d":true}', '{"a":[1,"…"]}', '{"a":[1,{"b":"x…z"}]}', '{"a":["…","…"]}', '{"a":"…"}']) {
      expect(difference("json", same, printed)).toBeNull();
    }
    expect(difference("json", '{"a":[1,{"b":"x"}]}', printed)).toBe('it.a[1].b is "xyz", not "x"');
    expect(difference("json", '{"a":[1]}', printed)).toMatch("it.a is");
    expect(difference("json", '{"e":"…"}', printed)).toMatch("it.e is undefined");
    expect(difference("json", '{"a":[1,{"c":0}]}', printed)).toBe("it.a[1].c is null, not 0");
    expect(difference("json", "{}", "not JSON")).toMatch("SyntaxError");
  });
});

describe("a page's shell", () => {
  const run = async (...codes: [language: string, code: string][]) => {
    const folder = await mkdtemp(join(tmpdir(), "fanout-shell-"));
    const env = { PATH: process.env["PATH"] ?? "" };
    try {
      const blocks = codes.map(([language, code], line) => ({ line, language, info: "", code }));
      return (await runInShell(blocks, { folder, env })).map(({ out }) => out);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };

  it("keeps variables from block to block, and hands on those that are exported", async () => {
    const node = "console.log(process.env.B)";
    expect(await run(["sh", "A=1\nexport B=2"], ["sh", "echo $A"], ["js", node])).toEqual(["", "1\n", "2\n"]);
  });

  it("ends at the first block that fails or complains, and names it", async () => {
    await expect(run(["sh", "true"], ["sh", "false"], ["sh", "true"])).rejects.toThrow("line 1: the block ended");
    await expect(run(["sh", "echo no >&2"], ["sh", "true"])).rejects.toThrow("line 0: the block complained");
    await expect(run(["js", "process.exit(3)"])).rejects.toThrow("line 0: the block ended the shell with 3");
    await expect(run(["sh", "echo $NOT_SET"])).rejects.toThrow("line 0: the block ended");
  });
});
