/**
 * What README.md promises beyond what its blocks print. That every block of it works, and that its links lead somewhere, is
 * tested with all other pages: `test/docs/pages.test.ts`, whose way of reading a page this shares.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { demoSetting } from "../../scripts/demo-provider.ts";
import { blocksOf } from "../docs/blocks.ts";
import { missingTools, ROOT, runPage } from "../docs/page.ts";
import type { Printed } from "../docs/shell.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startOwnGateway } from "./world.ts";

const README = await readFile(join(ROOT, "README.md"), "utf8");
const code = blocksOf(README)
  .map((block) => block.code)
  .join("\n");

describe.runIf(missingTools(README).length === 0)("README.md, typed from its beginning to its end", () => {
  let gateway: Gateway;
  let printed: Printed[] = [];
  beforeAll(async () => {
    gateway = await startGateway();
    printed = await runPage("README.md", gateway);
  });
  afterAll(() => gateway.stop());

  /** What the block with these words has printed. */
  function printedBy(words: string): string {
    const found = printed.filter(({ block }) => block.code.includes(words));
    expect(found.map(({ block }) => block.line)).toHaveLength(1);
    return found[0]?.out ?? "";
  }

  it("sends a batch and gets the documented answer", () => {
    const answer: unknown = JSON.parse(printedBy("sim/fail"));
    expect(answer).toMatchObject({
      status: "partial",
      results: ["one", expect.stringMatching(/^\[error\] /), "three"],
      errors: [null, { code: "upstream_error" }, null],
      items: [{}, {}, {}],
      usage: {},
      metrics: {},
    });
  });

  it("runs the program at its top with the stub that the gateway serves: answers in order, and a child run that ends at its budget", () => {
    const [notes = "", inChild = "", combined = ""] = printedBy("/stubs/python").split("\n");
    expect(notes.match(/Note: /g)).toHaveLength(3);
    expect(inChild).toMatch(/^\['Light has rays\.', 'Rays differ in colour\.', '\[error\] Global call budget exceeded/);
    expect(combined).toMatch(/^Combine: Note: Light has rays\./);
  });

  it("opens a batch asynchronously and reads it later", () => {
    const answer: unknown = JSON.parse(printedBy("respond-async"));
    expect(answer).toMatchObject({ object: "group", status: "completed", results: ["one", "two", "three"] });
  });

  it("streams an answer to a request of OpenAI's clients", () => {
    const events = printedBy("/v1/chat/completions").trimEnd().split("\n\n");
    expect(events.length).toBeGreaterThan(2);
    for (const event of events) expect(event).toMatch(/^data: /);
    expect(events.at(-1)).toBe("data: [DONE]");
  });
});

describe("README.md", () => {
  it("names where to read the remaining budget", () => {
    expect(README).toContain('curl -s $FANOUT_URL/budget -H "authorization: Bearer $FANOUT_TOKEN"');
  });

  it("configures a real provider in a way that the gateway accepts", async () => {
    const provider = blocksOf(README).find((block) => block.code.includes("UPSTREAMS="))?.code ?? "";
    const real = await startOwnGateway({ vars: parseEnv(provider.replace("sk-…", "sk-a-key")) });
    expect(await real.openRun({ budget: { usd: 0.01 } })).toMatchObject({ object: "run" });
  });

  it("names commands that exist; what they do is tested where they are", async () => {
    const { scripts } = z
      .looseObject({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    const named = [...README.matchAll(/npm (?:run (?:-s )?)?(?!ci\b)([a-z:-]+)/g)].map(([, name = ""]) => name);
    expect(named).toEqual(expect.arrayContaining(["demo", "test", "start", "watch"]));
    for (const name of named) expect(scripts).toHaveProperty([name]);
  });

  it("names a model and variables that the demo understands", () => {
    const line = code.split("\n").find((text) => text.includes("FANOUT_MODEL=")) ?? "";
    const vars = Object.fromEntries([...line.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
    expect(demoSetting(vars)).toMatchObject({ model: "openai/gpt-4o-mini" });
  });
});
