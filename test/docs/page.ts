/** Runs a page: a folder that looks like the reader's, a gateway, a run, and every block in order. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { WINDOW_MS_MAX } from "../../src/limits.ts";
import { RUNTIMES } from "../stubs/language.ts";
import { send, type Gateway } from "../support/gateway.ts";
import { blocksOf, stepsOf, type Step } from "./blocks.ts";
import { acceptConfiguration } from "./configuration.ts";
import { difference } from "./expected.ts";
import { LANGUAGES, TYPED_TOOLS } from "./languages.ts";
import { runInShell, type Printed } from "./shell.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const STAND_INS = fileURLToPath(new URL("stand-ins", import.meta.url));

/** The address that pages name; in a test the gateway has another. */
const DEFAULT_URL = "http://127.0.0.1:8787";

/** What of the checkout a reader's commands touch. */
const CHECKOUT = ["bin", "cli", "examples", "package.json", "scripts", "src", "stubs", "wrangler.toml"];
/** Packages that programs of pages import: these are the real ones. */
const PACKAGES = ["openai", "@anthropic-ai/sdk"];
/** Packages that lead to somebody else's service: these are stand-ins, which tell what they were checked against. */
const STAND_IN_PACKAGES = ["@cloudflare/sandbox"];

/**
 * Runs all that a page tells its reader to type. Throws where a block fails or prints something else than it says.
 * Returns what each block has printed that was typed. `addressed` puts addresses of this test in place of those that a page names.
 */
export async function runPage(
  path: string,
  gateway: Gateway,
  addressed: (text: string) => string = (text) => text,
): Promise<Printed[]> {
  const markdown = await readFile(join(ROOT, path), "utf8");
  const steps = stepsOf(blocksOf(markdown));
  const folder = await mkdtemp(join(tmpdir(), "fanout-page-"));
  try {
    await furnish(folder, gateway, markdown);
    // On a busy machine, calls that a block sends together arrive further apart than the default window.
    const { token } = await gateway.openRun({ name: path, budget: { usd: 1, calls: 1_000 }, window_ms: WINDOW_MS_MAX });
    const here = (text: string) => addressed(inPlaceOf(text, { url: gateway.url, token }));
    for (const step of merged(steps)) {
      if (step.kind === "file") await writeFile(join(folder, step.name), here(step.block.code));
      if (step.kind === "request") await sendRequest(step, gateway, token);
      if (step.kind === "configuration") await acceptConfiguration(step);
    }
    const runs = steps.filter((step) => step.kind === "run");
    const printed = await runInShell(
      runs.map(({ block }) => ({ ...block, code: here(block.code) })),
      { folder, env: environment(folder, gateway, token) },
    );
    for (const [index, { output, block }] of runs.entries()) {
      if (output === null) continue;
      const out = (printed[index]?.out ?? "").replaceAll(gateway.url, DEFAULT_URL);
      const wrong = difference(output.form, output.code, out);
      if (wrong !== null) throw new Error(`line ${output.line}, what line ${block.line} prints: ${wrong}`);
    }
    return printed;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A block as its reader would type it: here is the gateway, and what is secret is written out. */
function inPlaceOf(text: string, { url, token }: { url: string; token: string }): string {
  return text
    .replaceAll(DEFAULT_URL, url)
    .replaceAll("FANOUT_TOKEN=…", `FANOUT_TOKEN=${token}`)
    .replaceAll("sk-…", "sk-a-key");
}

async function furnish(folder: string, gateway: Gateway, markdown: string): Promise<void> {
  // What `npm start` writes on a first start.
  await writeFile(join(folder, ".dev.vars"), `ADMIN_KEY=${gateway.adminKey}\n`);
  // A terminal shows curl's progress; here it would look like a complaint.
  await writeFile(join(folder, ".curlrc"), "silent\nshow-error\n");
  for (const name of CHECKOUT) await symlink(join(ROOT, name), join(folder, name));
  const link = async (from: string, name: string) => {
    const place = join(folder, "node_modules", name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(from, name), place);
  };
  for (const name of PACKAGES) await link(join(ROOT, "node_modules"), name);
  // A copy: Deno looks where a file really lies, and is shown this folder only.
  const pyodide = join("node_modules", "pyodide");
  if (markdown.includes("loadPyodide")) await cp(join(RUNTIMES, pyodide), join(folder, pyodide), { recursive: true });
  for (const name of STAND_IN_PACKAGES) await link(join(STAND_INS, "node"), name);
}

function binOf(folder: string): string {
  return folder === STAND_INS ? join(folder, "bin") : join(folder, "node_modules", ".bin");
}

/** Where commands of pages are found. */
const COMMANDS = [STAND_INS, ROOT, RUNTIMES]
  .map(binOf)
  .concat(process.env["PATH"] ?? "")
  .join(":");

/** The tools that a page takes and this machine lacks. */
export function missingTools(markdown: string): string[] {
  const env = { ...process.env, PATH: COMMANDS };
  const inBlocks = blocksOf(markdown).flatMap(({ language }) => LANGUAGES.get(language)?.tool ?? []);
  const tools = new Set([...TYPED_TOOLS.filter((tool) => markdown.includes(tool)), ...inBlocks]);
  const lacking = [...tools].filter((tool) => spawnSync("sh", ["-c", `command -v ${tool}`], { env }).status !== 0);
  const lacksPyodide = markdown.includes("loadPyodide") && !existsSync(join(RUNTIMES, "node_modules/pyodide"));
  return lacksPyodide ? [...lacking, "pyodide"] : lacking;
}

function environment(folder: string, gateway: Gateway, token: string): Record<string, string> {
  return {
    PATH: [STAND_INS, ROOT, RUNTIMES]
      .map(binOf)
      .concat(process.env["PATH"] ?? "")
      .join(":"),
    HOME: process.env["HOME"] ?? "/",
    CURL_HOME: folder,
    LANG: "C.UTF-8",
    PYTHONPATH: join(STAND_INS, "python"),
    PYTHONDONTWRITEBYTECODE: "1",
    CHECKOUT: ROOT,
    FANOUT_URL: gateway.url,
    FANOUT_TOKEN: token,
    ADMIN_KEY: gateway.adminKey,
  };
}

/** Sends a body that a page shows. Runs are opened and changed by the operator, all else is the run's. */
async function sendRequest(step: Step & { kind: "request" }, gateway: Gateway, token: string): Promise<void> {
  const { method, path, block } = step;
  const credential = /^\/runs\b/.test(path) ? gateway.adminKey : token;
  const headers = { "content-type": "application/json" };
  const answer = await send(gateway.url + path, { method, headers, body: block.code, token: credential });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`line ${block.line}: ${method} ${path} answers ${answer.status}: ${text}`);
}

/** The steps, with all blocks of UPSTREAMS that name different upstreams as one: one gateway tries a whole page of them. */
function merged(steps: readonly Step[]): Step[] {
  const isUpstreams = (step: Step): boolean => step.kind === "configuration" && step.form === "upstreams";
  const [first, ...others] = steps.filter(isUpstreams);
  if (first === undefined || others.length === 0) return [...steps];
  const blocks = [first, ...others].map(({ block }) =>
    Object.entries(z.record(z.string(), z.unknown()).parse(JSON.parse(block.code))),
  );
  const all = blocks.flat();
  const together = Object.fromEntries(all);
  if (Object.keys(together).length < all.length) return [...steps];
  const one: Step = {
    kind: "configuration",
    form: "upstreams",
    block: { ...first.block, code: JSON.stringify(together) },
  };
  return [one, ...steps.filter((step) => !isUpstreams(step))];
}
