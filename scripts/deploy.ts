/**
 * `npm run deploy`: deploys the gateway to Cloudflare. Secrets are read from `.deploy.vars`, which git ignores; if the file has no
 * ADMIN_KEY, a new one is written to it. `-- --dry-run` checks and builds everything without an account; `-- --free` leaves out
 * what Cloudflare's free plan does not have.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse, stringify } from "smol-toml";
import { unstable_readConfig } from "wrangler";
import { z } from "zod";
import { FREE_PLAN_NOTES, withoutPaidFeatures } from "./deploy/free.ts";
import { deploy, type DeployDeps, type Ran } from "./deploy/steps.ts";
import { ensureKeys, freshKeys } from "./dev-vars.ts";
import { untilReady } from "./readiness.ts";
import { ROOT } from "./root.ts";

const wranglerToml = z.looseObject({
  vars: z.record(z.string(), z.unknown()),
  r2_buckets: z.array(z.looseObject({ bucket_name: z.string().optional() })),
});

const SECRETS_FILE = join(ROOT, ".deploy.vars");
const flags = process.argv.slice(2);
const OPTIONS = ["--dry-run", "--free"];
const dryRun = flags.includes("--dry-run");
const isFree = flags.includes("--free");

async function main(): Promise<number> {
  const unknown = flags.find((flag) => !OPTIONS.includes(flag));
  if (unknown !== undefined) {
    return fail(`Unknown option: ${unknown}. npm run deploy accepts only ${OPTIONS.join(" and ")}.`);
  }
  return isFree ? await withFreeConfig(run) : await run(join(ROOT, "wrangler.toml"));
}

async function run(configFile: string): Promise<number> {
  const { vars, r2_buckets } = wranglerToml.parse(unstable_readConfig({ config: configFile }));
  const buckets = r2_buckets.flatMap(({ bucket_name }) => bucket_name ?? []);
  const config = { file: configFile, vars, buckets };
  const problem = await deploy({ config, secrets: secretsOf(), dryRun }, deps);
  if (problem !== null) return fail(problem);
  if (isFree) console.log(`\nOn Cloudflare's free plan:\n${FREE_PLAN_NOTES.map((note) => `- ${note}`).join("\n")}`);
  return 0;
}

/** Writes the configuration for the free plan beside `wrangler.toml`, because its paths are relative, and deletes it. */
async function withFreeConfig(use: (file: string) => Promise<number>): Promise<number> {
  const file = join(ROOT, `wrangler.free-${process.pid}.toml`);
  const whole = parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8"));
  try {
    await writeFile(file, stringify(withoutPaidFeatures(whole)));
    return await use(file);
  } finally {
    await rm(file, { force: true });
  }
}

/** The variables of the file. A dry run writes no file and uses a temporary key. */
function secretsOf(): Record<string, string> {
  const fresh = freshKeys();
  if (!dryRun && ensureKeys(SECRETS_FILE, fresh)) {
    console.log("Wrote a new ADMIN_KEY and a SIGNING_KEY to .deploy.vars, which git ignores.");
  }
  const secrets = existsSync(SECRETS_FILE) ? parseEnv(readFileSync(SECRETS_FILE, "utf8")) : {};
  const set = Object.entries(secrets).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return dryRun ? { ADMIN_KEY: fresh.adminKey, ...Object.fromEntries(set) } : Object.fromEntries(set);
}

const deps: DeployDeps = {
  wrangler,
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
  async trouble(url, adminKey) {
    const readiness = await untilReady(url, adminKey);
    return readiness.ready ? null : readiness.message;
  },
  print: (line) => console.log(line),
};

function wrangler(args: readonly string[], show = false): Promise<Ran> {
  const program = createRequire(import.meta.url).resolve("wrangler");
  const env = {
    ...process.env,
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
    if (show) target.write(piece);
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
