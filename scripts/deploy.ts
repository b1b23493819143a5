/**
 * `npm run deploy`: deploys the gateway to Cloudflare. Secrets are read from `.deploy.vars`, which git ignores. Options are in
 * `scripts/deploy/options.ts`, and explained in docs/deploy.md.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { parse, stringify } from "smol-toml";
import { z } from "zod";
import type { ApiAnswer, ReadApi } from "./deploy/account.ts";
import { deployOptions, type DeployOptions } from "./deploy/options.ts";
import { servingTrouble } from "./deploy/serving.ts";
import { deploy, type DeployDeps, type Ran } from "./deploy/steps.ts";
import { changedConfig, withJurisdiction, withWorkersAi, workerConfigOf, type Toml } from "./deploy/worker-config.ts";
import { freshKey, setVariables } from "./dev-vars.ts";
import { unreachableUpstreams } from "./reach-upstreams.ts";
import { ROOT } from "./root.ts";

const CONFIG: Toml = parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8"));

const API_URL = process.env["CLOUDFLARE_API_BASE_URL"] ?? "https://api.cloudflare.com/client/v4";

async function main(): Promise<number> {
  const options = deployOptions(process.argv.slice(2), process.env);
  if (typeof options === "string") return fail(options);
  return await run(options, changedConfig(CONFIG, options));
}

async function run(options: DeployOptions, toml: Toml): Promise<number> {
  const secretsFile = options.environment === null ? ".deploy.vars" : `.deploy.vars.${options.environment}`;
  const path = join(ROOT, secretsFile);
  const variables = existsSync(path) ? parseEnv(readFileSync(path, "utf8")) : {};
  const local = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
  const deployment = { options, config: workerConfigOf(toml, local), local, secretsFile };
  const problem = await deploy(deployment, {
    ...deps,
    withConfig({ workersAi, jurisdiction }, use) {
      const bound = workersAi ? withWorkersAi(toml) : toml;
      return withConfig(jurisdiction === null ? bound : withJurisdiction(bound, jurisdiction), use);
    },
    writeVariables: (variables) => setVariables(path, variables),
  });
  return problem === null ? 0 : fail(problem);
}

/** Writes a changed configuration beside `wrangler.toml`, because its paths are relative, and deletes it. */
async function withConfig<T>(toml: Toml, use: (file: string) => Promise<T>): Promise<T> {
  if (toml === CONFIG) return await use(join(ROOT, "wrangler.toml"));
  const file = join(ROOT, `wrangler.deploy-${process.pid}.toml`);
  try {
    await writeFile(file, stringify(toml));
    return await use(file);
  } finally {
    await rm(file, { force: true });
  }
}

const deps: Omit<DeployDeps, "withConfig" | "writeVariables"> = {
  wrangler,
  login,
  confirm,
  async withFile(text, use) {
    const folder = await mkdtemp(join(tmpdir(), "fanout-deploy-"));
    try {
      const file = join(folder, "secrets.json");
      await writeFile(file, text, { mode: 0o600 });
      return await use(file);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  freshKey,
  trouble: (serving) => servingTrouble(serving, { get, now: () => performance.now(), sleep: (ms) => sleep(ms) }),
  unreachable: (vars) => unreachableUpstreams(vars, { isDeployed: true }),
  print: (line) => console.log(line),
};

/** Anything but a yes is a no, and so is a terminal that nobody is at. */
async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY || process.env["CI"]) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

const REQUEST_MS_MAX = 30_000;

async function get(url: string, headers: Record<string, string>): Promise<{ status: number; text: string } | null> {
  try {
    const reply = await fetch(url, { headers, signal: AbortSignal.timeout(REQUEST_MS_MAX) });
    return { status: reply.status, text: await reply.text() };
  } catch {
    return null;
  }
}

const credentials = z.union([
  z.object({ token: z.string() }).transform(({ token }) => ({ authorization: `Bearer ${token}` })),
  z.object({ key: z.string(), email: z.string() }).transform(({ key, email }) => ({
    "x-auth-key": key,
    "x-auth-email": email,
  })),
]);

/** Uses the login of wrangler, which refreshes it first. */
async function login(): ReturnType<DeployDeps["login"]> {
  const { status, output } = await wrangler(["auth", "token", "--json"]);
  if (status !== 0) return null;
  // An exception would show the token.
  const found = credentials.safeParse(jsonIn(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1)));
  if (!found.success) return null;
  return { read: readerWith(found.data), accountId: process.env["CLOUDFLARE_ACCOUNT_ID"] || null };
}

const apiReply = z.looseObject({
  success: z.boolean(),
  result: z.unknown(),
  errors: z.array(z.looseObject({ code: z.number(), message: z.string() })).default([]),
});

function readerWith(headers: Record<string, string>): ReadApi {
  return async (path, more): Promise<ApiAnswer> => {
    const reply = await get(`${API_URL}${path}`, { ...headers, ...more });
    if (reply === null) return { ok: false, status: 0, code: 0, message: "it does not respond" };
    const parsed = apiReply.safeParse(jsonIn(reply.text));
    if (!parsed.success)
      return { ok: false, status: reply.status, code: 0, message: "its answer is no JSON of the API" };
    const { success, result, errors } = parsed.data;
    const [first = { code: 0, message: "it gave no reason" }] = errors;
    return success ? { ok: true, result } : { ok: false, status: reply.status, ...first };
  };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function wrangler(args: readonly string[], run: { accountId?: string; show?: boolean } = {}): Promise<Ran> {
  const program = createRequire(import.meta.url).resolve("wrangler");
  const env = {
    ...process.env,
    ...(run.accountId === undefined ? {} : { CLOUDFLARE_ACCOUNT_ID: run.accountId }),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    WRANGLER_HIDE_BANNER: "true",
  };
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], {
    cwd: ROOT,
    env,
    stdio: ["inherit", "pipe", "pipe"],
  });
  let output = "";
  const take = (target: NodeJS.WriteStream) => (piece: string) => {
    output += piece;
    if (run.show === true) target.write(piece);
  };
  child.stdout.setEncoding("utf8").on("data", take(process.stdout));
  child.stderr.setEncoding("utf8").on("data", take(process.stderr));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ status: code ?? 1, output }));
  });
}

function fail(message: string): number {
  console.error(message);
  return 1;
}

process.exitCode = await main();
