/**
 * The steps of a deployment to Cloudflare: read the account, decide, create missing buckets, write new keys, upload, wait until the
 * gateway serves. Nothing is changed before all checks have passed. Reading, running wrangler, waiting and printing are
 * dependencies. Secrets are passed in a file that only its owner can read: never on a command line, never printed.
 */
import { readAccount, type Account, type ReadApi } from "./account.ts";
import type { Jurisdiction } from "../../src/jurisdiction.ts";
import { FREE_PLAN_NOTES } from "./free-plan.ts";
import type { DeployOptions } from "./options.ts";
import { hasAdminKey, hasUpstreams, planDeployment, type Plan } from "./plan.ts";
import type { Serving } from "./serving.ts";
import type { WorkerConfig } from "./worker-config.ts";

export type Ran = { status: number; output: string };

export type DeployDeps = {
  /** Runs wrangler to its end, in the account; `show` also prints its output. */
  wrangler(args: readonly string[], run?: { accountId?: string; show?: boolean }): Promise<Ran>;
  /** Reads Cloudflare's API with the login of wrangler; null = not logged in. */
  login(): Promise<{ read: ReadApi; accountId: string | null } | null>;
  /** Writes a file that only its owner can read, passes its path to `use`, and deletes it afterwards. */
  withFile<T>(text: string, use: (path: string) => Promise<T>): Promise<T>;
  /** Passes the path of the configuration that is uploaded to `use`, with the binding of Workers AI and the place of its buckets. */
  withConfig<T>(
    has: { workersAi: boolean; jurisdiction: Jurisdiction | null },
    use: (path: string) => Promise<T>,
  ): Promise<T>;
  /** Adds new variables to the secrets file. */
  writeVariables(variables: Record<string, string>): void;
  /** Asks the operator; false where nobody can be asked. */
  confirm(question: string): Promise<boolean>;
  freshKey(): string;
  /** Waits until the deployed version serves requests; returns why it does not, or null. */
  trouble(serving: Serving): Promise<string | null>;
  /** A sentence for each upstream that this machine cannot reach, or that only this machine's network can. */
  unreachable(vars: Readonly<Record<string, unknown>>): Promise<string[]>;
  print(line: string): void;
};

export type Deployment = {
  options: DeployOptions;
  config: WorkerConfig;
  /** The variables of the secrets file, without empty ones. */
  local: Record<string, string>;
  secretsFile: string;
};

const NOT_LOGGED_IN =
  "Not logged in to Cloudflare. Run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.";

/** Deploys, or in a dry run does everything that needs no account. Returns what went wrong, or null. */
export async function deploy(asked: Deployment, deps: DeployDeps): Promise<string | null> {
  if (asked.options.isDryRun) return await dryRun(asked, deps);
  const { config } = asked;
  const login = await deps.login();
  if (login === null) return NOT_LOGGED_IN;
  const accountId = config.accountId ?? login.accountId;
  const found = await readAccount(config, { accountId, read: login.read, isBuild: asked.options.isBuild });
  if (!found.ok) return unchanged(found.message);
  const { account } = found;
  const deployment = await withOffer(asked, account, deps);
  const planned = planDeployment({ ...deployment, worker: account.worker, freshKey: deps.freshKey });
  if (!planned.ok) return unchanged(planned.message);
  for (const note of planned.plan.notes) deps.print(note);
  await warn(planned.plan, deps);
  const made = await createBuckets(account, deps);
  if (!made.ok) return made.message;
  const uploaded = await upload(deployment, planned.plan, { ...account, madeBuckets: made.buckets }, deps);
  if (!uploaded.ok) return uploaded.message;
  if (deployment.options.isBuild && !hasAdminKey({ ...deployment, worker: account.worker })) return null;
  const adminKey = planned.plan.secrets["ADMIN_KEY"] ?? null;
  const trouble = await confirmServing(uploaded.output, { adminKey, isFree: deployment.options.isFree }, deps);
  if (trouble === null || account.worker === null) return trouble;
  return `${trouble}\nTo go back to the version before: npx wrangler rollback --name ${config.name}`;
}

const OFFER =
  "No provider is configured. Answer with Cloudflare's own models over Workers AI, without any key? It bills your account beyond 10,000 free neurons a day.";

/** Offers Workers AI where the gateway would have no provider at all. */
async function withOffer(deployment: Deployment, { worker }: Account, deps: DeployDeps): Promise<Deployment> {
  if (deployment.options.usesWorkersAi || hasUpstreams({ ...deployment, worker })) return deployment;
  // Who deploys by the button has been told of it on the page, and has no terminal.
  const usesWorkersAi = deployment.options.isBuild || (await deps.confirm(OFFER));
  return { ...deployment, options: { ...deployment.options, usesWorkersAi } };
}

const unchanged = (message: string): string => `${message}\nNothing was changed in the account.`;

async function dryRun(deployment: Deployment, deps: DeployDeps): Promise<string | null> {
  const planned = planDeployment({ ...deployment, worker: null, freshKey: deps.freshKey });
  if (!planned.ok) return planned.message;
  await warn(planned.plan, deps);
  const { jurisdiction } = deployment.config;
  const { status } = await withArgs(deployment, { ...planned.plan, jurisdiction }, deps, (args) =>
    deps.wrangler([...args, "--dry-run"], { show: true }),
  );
  if (status !== 0) return `wrangler deploy failed with exit status ${status}.`;
  const buckets = Object.values(deployment.config.buckets);
  const created = buckets.length === 0 ? "" : ` It creates missing R2 buckets (${buckets.join(", ")}).`;
  deps.print(`Nothing was uploaded. A real deployment does the same and uploads it.${created}`);
  if (deployment.options.isFree) printFreePlan(deps);
  return null;
}

/** Names upstreams that cannot be reached. It is no reason to stop: this machine may be in another network than the Worker. */
async function warn({ known }: Plan, deps: DeployDeps): Promise<void> {
  for (const sentence of await deps.unreachable(known)) deps.print(`Warning: ${sentence}.`);
}

type MadeBuckets = { ok: true; buckets: readonly string[] } | { ok: false; message: string };

/** The option of wrangler for what is in a jurisdiction. */
function placeArgs(jurisdiction: Jurisdiction | null): string[] {
  return jurisdiction === null ? [] : ["--jurisdiction", jurisdiction];
}

async function createBuckets(account: Account, deps: DeployDeps): Promise<MadeBuckets> {
  const { id, missingBuckets, jurisdiction } = account;
  const buckets: string[] = [];
  for (const bucket of missingBuckets) {
    deps.print(`Creating the R2 bucket ${bucket}.`);
    const args = ["r2", "bucket", "create", bucket, ...placeArgs(jurisdiction)];
    const created = await deps.wrangler(args, { accountId: id });
    if (created.status !== 0) {
      await deleteBuckets(account, buckets, deps);
      const message = `The R2 bucket ${bucket} could not be created:\n${created.output.trim()}`;
      return { ok: false, message: unchanged(message) };
    }
    buckets.push(bucket);
  }
  return { ok: true, buckets };
}

/** Deletes buckets that this deployment created and nothing has used. */
async function deleteBuckets(
  { id, jurisdiction }: Account,
  buckets: readonly string[],
  deps: DeployDeps,
): Promise<void> {
  for (const bucket of buckets) {
    await deps.wrangler(["r2", "bucket", "delete", bucket, ...placeArgs(jurisdiction)], { accountId: id });
  }
}

/** Code of Cloudflare's API for `[limits]` on the free plan. Whether an account pays is known only from this refusal. */
const LIMITS_NEED_PAID_PLAN = /\b100328\b/;

type Uploaded = { ok: true; output: string } | { ok: false; message: string };

/** New variables are written first: a key that was uploaded and then lost could not be read back. */
async function upload(
  deployment: Deployment,
  plan: Plan,
  account: Account & { madeBuckets: readonly string[] },
  deps: DeployDeps,
): Promise<Uploaded> {
  const names = Object.keys(plan.written);
  if (names.length > 0 && !deployment.options.isBuild) {
    deps.writeVariables(plan.written);
    deps.print(
      `Wrote ${names.join(", ")} to ${deployment.secretsFile}, which git ignores. Keep a copy in a safe place.`,
    );
  }
  const { status, output } = await withArgs(deployment, { ...plan, ...account }, deps, (args) =>
    deps.wrangler(args, { accountId: account.id, show: true }),
  );
  if (status === 0) return { ok: true, output };
  if (!LIMITS_NEED_PAID_PLAN.test(output)) {
    return { ok: false, message: `wrangler deploy failed with exit status ${status}.` };
  }
  await deleteBuckets(account, account.madeBuckets, deps);
  return {
    ok: false,
    message: unchanged(
      "The account is on the Workers Free plan, which refuses [limits] of wrangler.toml. Deploy with less: npm run deploy -- --free, or upgrade the plan.",
    ),
  };
}

/** The arguments of an upload, with its files. */
async function withArgs(
  { options }: Deployment,
  { secrets, bindsWorkersAi, jurisdiction }: Pick<Plan, "secrets" | "bindsWorkersAi"> & Pick<Account, "jurisdiction">,
  deps: DeployDeps,
  use: (args: readonly string[]) => Promise<Ran>,
): Promise<Ran> {
  const immediate = options.isImmediate ? ["--durable-objects-code-update-mode", "immediate"] : [];
  return await deps.withConfig({ workersAi: bindsWorkersAi, jurisdiction }, (config) =>
    withSecrets(secrets, deps, (file) => use(["deploy", "--config", config, ...immediate, ...file])),
  );
}

/** wrangler gets no file if there is nothing to upload: it keeps all secrets then. */
async function withSecrets(
  secrets: Record<string, string>,
  { withFile }: DeployDeps,
  use: (args: readonly string[]) => Promise<Ran>,
): Promise<Ran> {
  if (Object.keys(secrets).length === 0) return await use([]);
  return await withFile(JSON.stringify(secrets), (file) => use(["--secrets-file", file]));
}

async function confirmServing(
  output: string,
  { adminKey, isFree }: { adminKey: string | null; isFree: boolean },
  deps: DeployDeps,
): Promise<string | null> {
  const url = /https:\/\/[\w.-]+\.workers\.dev\b/.exec(output)?.[0];
  const versionId = /Version ID: ([0-9a-f-]{36})/.exec(output)?.[1] ?? null;
  if (url === undefined) {
    deps.print("Deployed. wrangler reported no workers.dev address: the gateway is at your configured routes.");
  } else {
    const trouble = await deps.trouble({ url, adminKey, versionId });
    if (trouble !== null) return `Deployed to ${url}, but the gateway is not usable: ${trouble}`;
    deps.print(`\nfanout is ready at ${url}`);
  }
  if (isFree) printFreePlan(deps);
  return null;
}

function printFreePlan({ print }: DeployDeps): void {
  print(`\nOn Cloudflare's free plan:\n${FREE_PLAN_NOTES.map((note) => `- ${note}`).join("\n")}`);
}
