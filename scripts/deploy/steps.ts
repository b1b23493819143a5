/**
 * Deploying to Cloudflare, step by step. What runs wrangler, waits and prints is handed in, so that the steps can be seen
 * without an account. Secrets are passed in a file that only their owner can read: never on a command line, never printed.
 */
import { parseConfig } from "../../src/env.ts";
import { toWire } from "../../src/errors.ts";

/** What `wrangler.toml` says of the Worker, as far as deploying asks. */
export type WorkerConfig = { vars: Record<string, unknown>; buckets: readonly string[] };

export type Ran = { status: number; output: string };

export type DeployDeps = {
  /** Runs wrangler to its end; `show` also prints what it prints. */
  wrangler(args: readonly string[], show?: boolean): Promise<Ran>;
  /** Writes a file that only its owner can read and hands its path on; the file is gone when `use` has ended. */
  withFile<T>(text: string, use: (path: string) => Promise<T>): Promise<T>;
  /** Why the gateway at this address cannot work; null if it can. Waits until it answers. */
  trouble(url: string, adminKey: string): Promise<string | null>;
  print(line: string): void;
};

export type Deployment = { config: WorkerConfig; secrets: Record<string, string>; dryRun: boolean };

/** Deploys, or with `dryRun` does all that needs no account. Returns what went wrong, or null. */
export async function deploy({ config, secrets, dryRun }: Deployment, deps: DeployDeps): Promise<string | null> {
  const parsed = parseConfig({ ...config.vars, ...secrets });
  if (!parsed.ok) return toWire(parsed.reason).error.message;
  const { adminKey } = parsed.config;
  if (adminKey === null) return "ADMIN_KEY is not set.";
  if (!dryRun) {
    const unready = await prepare(config, deps);
    if (unready !== null) return unready;
  }
  const flags = dryRun ? ["--dry-run"] : [];
  const text = JSON.stringify(secrets);
  const { status, output } = await deps.withFile(text, (file) =>
    deps.wrangler(["deploy", "--secrets-file", file, ...flags], true),
  );
  if (status !== 0) return `wrangler deploy ended with ${status}.`;
  if (dryRun) {
    deps.print(`Nothing was uploaded. A real run would also see to the R2 buckets (${config.buckets.join(", ")}).`);
    return null;
  }
  const url = /https:\/\/[\w.-]+\.workers\.dev\b/.exec(output)?.[0];
  if (url === undefined) {
    deps.print("Deployed. wrangler named no workers.dev address: the gateway is at the routes that you configured.");
    return null;
  }
  const trouble = await deps.trouble(url, adminKey);
  if (trouble !== null) return `Deployed to ${url}, but it cannot work: ${trouble}`;
  deps.print(`\nfanout is ready at ${url}`);
  return null;
}

/** What must be there before an upload: a login, and the buckets. */
async function prepare({ buckets }: WorkerConfig, { wrangler, print }: DeployDeps): Promise<string | null> {
  if ((await wrangler(["whoami", "--json"])).status !== 0) {
    return "Not logged in to Cloudflare. Run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.";
  }
  for (const bucket of buckets) {
    if ((await wrangler(["r2", "bucket", "info", bucket, "--json"])).status === 0) continue;
    print(`Creating the R2 bucket ${bucket}.`);
    const created = await wrangler(["r2", "bucket", "create", bucket]);
    if (created.status !== 0) {
      return `The R2 bucket ${bucket} could not be created. Enable R2 in the dashboard, or take [[r2_buckets]] out of wrangler.toml: then there are no files and batches.\n${created.output.trim()}`;
    }
  }
  return null;
}
