/**
 * The steps of a deployment to Cloudflare. Running wrangler, waiting and printing are dependencies, so that tests need no
 * account. Secrets are passed in a file that only its owner can read: never on a command line, never printed.
 */
import { credentialsOf } from "../../src/auth/credentials.ts";
import { parseConfig } from "../../src/env.ts";
import { toWire } from "../../src/errors.ts";

/** The parts of wrangler's configuration that a deployment needs, and its file. */
export type WorkerConfig = { file: string; vars: Record<string, unknown>; buckets: readonly string[] };

export type Ran = { status: number; output: string };

export type DeployDeps = {
  /** Runs wrangler to its end; `show` also prints its output. */
  wrangler(args: readonly string[], show?: boolean): Promise<Ran>;
  /** Writes a file that only its owner can read, passes its path to `use`, and deletes it afterwards. */
  withFile<T>(text: string, use: (path: string) => Promise<T>): Promise<T>;
  /** Waits until the gateway responds; returns why it is not usable, or null. */
  trouble(url: string, adminKey: string): Promise<string | null>;
  print(line: string): void;
};

export type Deployment = { config: WorkerConfig; secrets: Record<string, string>; dryRun: boolean };

/** Deploys, or with `dryRun` does everything that needs no account. Returns what went wrong, or null. */
export async function deploy({ config, secrets, dryRun }: Deployment, deps: DeployDeps): Promise<string | null> {
  const parsed = parseConfig({ ...config.vars, ...secrets });
  if (!parsed.ok) return toWire(parsed.reason).error.message;
  if (parsed.config.adminKey === null) return "ADMIN_KEY is not set.";
  const usable = credentialsOf(parsed.config);
  if (!usable.ok) return toWire(usable.reason).error.message;
  const { adminKey } = usable.credentials;
  if (!dryRun) {
    const unready = await prepare(config, deps);
    if (unready !== null) return unready;
  }
  const flags = dryRun ? ["--dry-run"] : [];
  const text = JSON.stringify(secrets);
  const { status, output } = await deps.withFile(text, (file) =>
    deps.wrangler(["deploy", "--config", config.file, "--secrets-file", file, ...flags], true),
  );
  if (status !== 0) return `wrangler deploy failed with exit status ${status}.`;
  if (dryRun) {
    const buckets = config.buckets.length === 0 ? "" : ` It creates missing R2 buckets (${config.buckets.join(", ")}).`;
    deps.print(`Nothing was uploaded. A real deployment does the same and uploads it.${buckets}`);
    return null;
  }
  const url = /https:\/\/[\w.-]+\.workers\.dev\b/.exec(output)?.[0];
  if (url === undefined) {
    deps.print("Deployed. wrangler reported no workers.dev address: the gateway is at your configured routes.");
    return null;
  }
  const trouble = await deps.trouble(url, adminKey);
  if (trouble !== null) return `Deployed to ${url}, but the gateway is not usable: ${trouble}`;
  deps.print(`\nfanout is ready at ${url}`);
  return null;
}

/** Checks the login and creates missing buckets. */
async function prepare({ buckets }: WorkerConfig, { wrangler, print }: DeployDeps): Promise<string | null> {
  if ((await wrangler(["whoami", "--json"])).status !== 0) {
    return "Not logged in to Cloudflare. Run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.";
  }
  for (const bucket of buckets) {
    if ((await wrangler(["r2", "bucket", "info", bucket, "--json"])).status === 0) continue;
    print(`Creating the R2 bucket ${bucket}.`);
    const created = await wrangler(["r2", "bucket", "create", bucket]);
    if (created.status !== 0) {
      return `The R2 bucket ${bucket} could not be created. Enable R2 in the dashboard, or remove [[r2_buckets]] from wrangler.toml; files and batches are then not available.\n${created.output.trim()}`;
    }
  }
  return null;
}
