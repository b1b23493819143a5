/** What README.md and the stub's README tell a reader to type, typed. A block of theirs that no test covers fails here. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { demoSetting } from "../../scripts/demo-provider.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { hasPython } from "../support/python.ts";
import { startOwnGateway } from "./world.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DEFAULT_URL = "http://127.0.0.1:8787";

const blocksOf = async (file: string) =>
  [...(await readFile(join(ROOT, file), "utf8")).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, code]) => {
    expect(language).toBe("sh");
    return code ?? "";
  });

let gateway: Gateway;
let folder = "";
beforeAll(async () => {
  gateway = await startGateway();
  folder = await mkdtemp(join(tmpdir(), "fanout-readme-"));
  // What `npm start` writes on a first start.
  await writeFile(join(folder, ".dev.vars"), `ADMIN_KEY=${gateway.adminKey}\n`);
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs blocks in one shell, as a reader would, at the gateway of this test. */
async function type(blocks: string[], env: Record<string, string> = {}): Promise<string> {
  const script = `set -eu\n${blocks.join("\n")}`.replaceAll(DEFAULT_URL, gateway.url);
  const shell = spawn("sh", ["-c", script], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [printed, complaint] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
  expect(complaint).toBe("");
  return printed;
}

/** The blocks of README.md, in its order; one more or one fewer must be looked at here. */
async function readme() {
  const blocks = await blocksOf("README.md");
  expect(blocks).toHaveLength(9);
  const [commands = "", realDemo = "", start = "", open = "", batch = "", python = "", ...more] = blocks;
  const [left = "", client = "", provider = ""] = more;
  return { commands, realDemo, start, open, batch, python, left, client, provider };
}

describe("README.md", () => {
  it("opens a run and asks a batch, whose answer is as it says", async () => {
    const { open, batch } = await readme();
    const answer: unknown = JSON.parse(await type([open, batch]));
    expect(answer).toMatchObject({
      status: "partial",
      results: ["one", expect.stringMatching(/^\[error\] /), "three"],
      errors: [null, { code: "upstream_error" }, null],
      items: [{}, {}, {}],
      usage: {},
      metrics: {},
    });
  });

  it("tells where to read what is left", async () => {
    const sentence = (await readFile(join(ROOT, "README.md"), "utf8")).match(/What is left: `(curl [^`]+)`/)?.[1];
    const { open } = await readme();
    const left: unknown = JSON.parse(await type([open, sentence ?? "false"]));
    expect(left).toMatchObject({ usd: { limit: 0.1, spent: 0, reserved: 0, remaining: 0.1 } });
  });

  it.runIf(hasPython)("asks the same from Python, with the stub that the gateway serves", async () => {
    const { open, python } = await readme();
    expect(await type([open, python])).toBe("['one', 'two', 'three']\n");
  });

  it("leaves a batch to itself and comes back for it", async () => {
    const { open, left } = await readme();
    const answer: unknown = JSON.parse(await type([open, left]));
    expect(answer).toMatchObject({ object: "group", status: "completed", results: ["one", "two", "three"] });
  });

  it("streams an answer as OpenAI's clients ask for it", async () => {
    const { open, client } = await readme();
    const events = (await type([open, client])).trimEnd().split("\n\n");
    expect(events.length).toBeGreaterThan(2);
    for (const event of events) expect(event).toMatch(/^data: /);
    expect(events.at(-1)).toBe("data: [DONE]");
  });

  it("configures a real provider in a way that the gateway accepts", async () => {
    const { provider } = await readme();
    const real = await startOwnGateway({ vars: parseEnv(provider.replace("sk-…", "sk-a-key")) });
    expect(await real.openRun({ budget: { usd: 0.01 } })).toMatchObject({ object: "run" });
  });

  it("names commands that exist; what they do is tested where they are", async () => {
    const { commands, start, realDemo } = await readme();
    const { scripts } = z
      .looseObject({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    const named = [...`${commands}${start}${realDemo}`.matchAll(/npm (?:run )?(?!ci)(\w+)/g)].map(([, name]) => name);
    expect(named).toEqual(["demo", "test", "start", "demo"]);
    for (const name of named) expect(scripts).toHaveProperty(name ?? "");
  });

  it("names a model and variables that the demo understands", async () => {
    const { realDemo } = await readme();
    const vars = Object.fromEntries([...realDemo.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
    expect(demoSetting(vars)).toMatchObject({ model: "openai/gpt-4o-mini" });
  });

  it("names only files and folders that are there", async () => {
    const links = [...(await readFile(join(ROOT, "README.md"), "utf8")).matchAll(/\]\(([^)]+)\)/g)];
    expect(links.length).toBeGreaterThan(3);
    for (const [, path] of links) expect(await readFile(join(ROOT, path ?? ""), "utf8")).not.toBe("");
  });
});

describe("stubs/python/README.md", () => {
  it.runIf(hasPython)("fetches a stub that works with the variables it names", async () => {
    const [block, ...more] = await blocksOf("stubs/python/README.md");
    expect(more).toEqual([]);
    const { token } = await gateway.openRun();
    // curl's progress goes to standard error where it is not silenced.
    const fetched = (block ?? "").replace("curl -o", "curl -s -o").replace("FANOUT_TOKEN=…", `FANOUT_TOKEN=${token}`);
    const printed = await type([fetched, `python3 -c 'from fanout import llm_query; print(llm_query("ping"))'`]);
    expect(printed).toBe("ping\n");
  });
});
