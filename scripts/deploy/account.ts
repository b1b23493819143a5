/** Reads a Cloudflare account: what is there before a deployment, and what stands in its way, as one sentence. Changes nothing. */
import { z } from "zod";
import { jurisdictionIn, type Jurisdiction } from "../../src/jurisdiction.ts";
import type { WorkerConfig } from "./worker-config.ts";

/** An answer of Cloudflare's API: its result, or the status and code of its first error. */
export type ApiAnswer = { ok: true; result: unknown } | { ok: false; status: number; code: number; message: string };

/** Sends a GET request to a path of the API. Throws if the API cannot be reached. */
export type ReadApi = (path: string, headers?: Readonly<Record<string, string>>) => Promise<ApiAnswer>;

const remoteBinding = z.looseObject({ name: z.string(), type: z.string() });
export type RemoteBinding = z.infer<typeof remoteBinding>;

/** A deployed Worker. The values of secrets cannot be read. */
export type RemoteWorker = { secrets: readonly string[]; bindings: readonly RemoteBinding[] };

export type Account = {
  id: string;
  /** null = there is no Worker of this name. */
  worker: RemoteWorker | null;
  /** Buckets of the configuration that do not exist. */
  missingBuckets: readonly string[];
  /** Where the buckets are, by the configuration or by the Worker; null = anywhere. */
  jurisdiction: Jurisdiction | null;
};

export type ReadAccount = { ok: true; account: Account } | { ok: false; message: string };

const NOT_FOUND = 404;
/** Codes of Cloudflare's API. */
const NO_SUBDOMAIN_OR_WORKER = 10007;
const NO_WORKER = [NO_SUBDOMAIN_OR_WORKER, 10090];
const R2_NOT_ENABLED = 10042;
const FORBIDDEN = [401, 403];

const stop = (message: string): { ok: false; message: string } => ({ ok: false, message });

/** Reads all that a deployment must know. `isBuild`: Cloudflare builds the repository; `accountId`: the operator's choice; null = the only account of the login. */
export async function readAccount(
  config: WorkerConfig,
  { accountId, read, isBuild = false }: { accountId: string | null; read: ReadApi; isBuild?: boolean },
): Promise<ReadAccount> {
  const chosen = accountId === null ? await onlyAccount(read) : { ok: true as const, id: accountId };
  if (!chosen.ok) return chosen;
  const { id } = chosen;
  const found = await readWorker(`/accounts/${id}/workers/scripts/${config.name}`, read);
  if (!found.ok) return found;
  // In a build of Cloudflare's, it is the Worker that Cloudflare has made for this repository.
  if (found.worker !== null && !isBuild && !isGateway(found.worker)) {
    return stop(
      `The account has a Worker named ${config.name} that is not this gateway, and a deployment would replace it. Choose another name: npm run deploy -- --name NAME`,
    );
  }
  const moved = jurisdictionTrouble(config, found.worker);
  if (moved !== null) return stop(moved);
  const jurisdiction = config.jurisdiction ?? bucketJurisdiction(found.worker) ?? null;
  const address = config.usesWorkersDev ? await subdomainTrouble(id, read) : null;
  if (address !== null) return stop(address);
  const buckets = await missingBuckets(id, { names: Object.values(config.buckets), jurisdiction }, read);
  if (!buckets.ok) return buckets;
  return { ok: true, account: { id, worker: found.worker, missingBuckets: buckets.missing, jurisdiction } };
}

/** Where the Worker's bucket is; undefined if it has none, or Cloudflare names a place that the gateway does not know. */
function bucketJurisdiction(worker: RemoteWorker | null): Jurisdiction | null | undefined {
  const bucket = worker?.bindings.find(({ type }) => type === "r2_bucket");
  return bucket === undefined ? undefined : jurisdictionIn(bucket["jurisdiction"]);
}

/** Objects and buckets cannot move: a gateway that is deployed to another place finds none of its runs. */
function jurisdictionTrouble({ name, jurisdiction }: WorkerConfig, worker: RemoteWorker | null): string | null {
  if (worker === null || jurisdiction === null) return null;
  const before = bucketJurisdiction(worker);
  const isKept = worker.secrets.includes("JURISDICTION") && (before === undefined || before === jurisdiction);
  if (isKept) return null;
  return `The Worker ${name} keeps its data outside of the jurisdiction ${jurisdiction}, and data cannot move. Deploy another Worker: npm run deploy -- --name NAME`;
}

const accountList = z.array(z.looseObject({ id: z.string(), name: z.string() }));

async function onlyAccount(read: ReadApi): Promise<{ ok: true; id: string } | { ok: false; message: string }> {
  const answer = await read("/accounts?per_page=50");
  if (!answer.ok) return refused("list the accounts", "Account Settings: Read", answer);
  const accounts = accountList.parse(answer.result);
  const [first] = accounts;
  if (first === undefined) return stop("The login has no account. Set CLOUDFLARE_ACCOUNT_ID to the account's id.");
  if (accounts.length === 1) return { ok: true, id: first.id };
  const shown = accounts.map(({ id, name }) => `${id} (${name})`).join(", ");
  return stop(`The login has ${accounts.length} accounts. Set CLOUDFLARE_ACCOUNT_ID to one of them: ${shown}`);
}

const secretList = z.array(z.looseObject({ name: z.string() }));
const settings = z.looseObject({ bindings: z.array(remoteBinding).default([]) });

type FoundWorker = { ok: true; worker: RemoteWorker | null } | { ok: false; message: string };

async function readWorker(path: string, read: ReadApi): Promise<FoundWorker> {
  const answer = await read(`${path}/settings`);
  // A wrong id of an account is not found either, with another code.
  if (!answer.ok && NO_WORKER.includes(answer.code)) return { ok: true, worker: null };
  if (!answer.ok) return refused("read Workers", "Workers Scripts: Edit", answer);
  const listed = await read(`${path}/secrets`);
  if (!listed.ok) return refused("list the names of secrets", "Workers Scripts: Edit", listed);
  const { bindings } = settings.parse(answer.result);
  const names = [...secretList.parse(listed.result), ...bindings.filter(isSecret)].map(({ name }) => name);
  const worker = { secrets: [...new Set(names)], bindings: bindings.filter((each) => !isSecret(each)) };
  return { ok: true, worker };
}

const isSecret = ({ type }: RemoteBinding): boolean => type === "secret_text";

/** A gateway has run objects. */
function isGateway({ bindings }: RemoteWorker): boolean {
  return bindings.some(({ name, type }) => name === "RUN" && type === "durable_object_namespace");
}

async function subdomainTrouble(id: string, read: ReadApi): Promise<string | null> {
  const answer = await read(`/accounts/${id}/workers/subdomain`);
  if (answer.ok) return null;
  if (answer.code !== NO_SUBDOMAIN_OR_WORKER)
    return refused("read the subdomain", "Workers Scripts: Edit", answer).message;
  return `The account has no workers.dev subdomain, so the gateway would have no address. Register one at https://dash.cloudflare.com/${id}/workers/onboarding, or set \`routes\` in wrangler.toml.`;
}

type Missing = { ok: true; missing: string[] } | { ok: false; message: string };

async function missingBuckets(
  id: string,
  { names, jurisdiction }: { names: readonly string[]; jurisdiction: Jurisdiction | null },
  read: ReadApi,
): Promise<Missing> {
  const missing: string[] = [];
  const headers = jurisdiction === null ? {} : { "cf-r2-jurisdiction": jurisdiction };
  for (const name of names) {
    const answer = await read(`/accounts/${id}/r2/buckets/${name}`, headers);
    if (answer.ok) continue;
    if (answer.code === R2_NOT_ENABLED) {
      return stop(
        `R2 is not enabled in the account. Enable it at https://dash.cloudflare.com/${id}/r2, or deploy without files and /v1/batches: npm run deploy -- --without-r2`,
      );
    }
    if (answer.status !== NOT_FOUND) return refused("read R2 buckets", "Workers R2 Storage: Edit", answer);
    missing.push(name);
  }
  return { ok: true, missing };
}

function refused(
  action: string,
  permission: string,
  { status, code, message }: Extract<ApiAnswer, { ok: false }>,
): { ok: false; message: string } {
  return FORBIDDEN.includes(status)
    ? stop(
        `The login may not ${action}. Its token needs the permission "${permission}"; docs/deploy.md lists all of them.`,
      )
    : stop(`Cloudflare's API could not ${action}: ${message} (status ${status}, code ${code}). Try again later.`);
}
