/** What a deployment uploads beside its secrets: wrangler.toml, changed as the options say. Pure. */
import { z } from "zod";
import { jurisdictionIn, type Jurisdiction } from "../../src/jurisdiction.ts";
import { AI_BINDING } from "../../src/providers/kinds/workers-ai.ts";
import type { DeployOptions } from "./options.ts";

/** What the free plan refuses, or what needs an account with a payment method. */
const LEFT_OUT_FREE = ["limits", "r2_buckets", "workflows"] as const;

export type Toml = Record<string, unknown>;
const tables = z.record(z.string(), z.unknown());
const named = z.looseObject({ name: z.string() });
const buckets = z.array(z.looseObject({ bucket_name: z.string().optional() }));
const workflows = z.array(z.looseObject({ name: z.string() }));

type Changes = Pick<DeployOptions, "isFree" | "hasNoR2" | "name" | "environment">;

/** A configuration whose buckets and Workflows are in a jurisdiction, as its objects are by the variable of that name. */
export function withJurisdiction(toml: Toml, jurisdiction: Jurisdiction): Toml {
  const each = (key: "r2_buckets" | "workflows"): Toml =>
    toml[key] === undefined
      ? {}
      : {
          [key]: z
            .array(tables)
            .parse(toml[key])
            .map((entry) => ({ ...entry, jurisdiction })),
        };
  return { ...toml, ...each("r2_buckets"), ...each("workflows") };
}

/** A configuration with the binding of Workers AI; itself if it has one. */
export function withWorkersAi(toml: Toml): Toml {
  return "ai" in toml ? toml : { ...toml, ai: { binding: AI_BINDING } };
}

/**
 * The parsed wrangler.toml with the changes, itself without any. An environment has all settings of the file, but for those that `[env.NAME]` has
 * itself: wrangler would leave out objects, buckets and limits there. A Worker with another name gets a bucket and a
 * Workflow of its own, if theirs begin with the name in the file: two gateways must not share them.
 */
export function changedConfig(toml: Toml, { isFree, hasNoR2, name, environment }: Changes): Toml {
  if (!isFree && !hasNoR2 && name === null && environment === null) return toml;
  const { env, ...whole } = toml;
  const own = environment === null ? {} : tables.parse(tables.parse(env ?? {})[environment] ?? {});
  const nameBefore = named.parse(whole).name;
  const ownName = typeof own["name"] === "string" ? own["name"] : null;
  const newName = name ?? ownName ?? (environment === null ? nameBefore : `${nameBefore}-${environment}`);
  const changed: Toml = { ...renamed(whole, nameBefore, newName), ...own, name: newName };
  const leftOut: readonly string[] = [...(isFree ? LEFT_OUT_FREE : []), ...(hasNoR2 ? ["r2_buckets"] : [])];
  return Object.fromEntries(Object.entries(changed).filter(([key]) => !leftOut.includes(key)));
}

function renamed(whole: Toml, before: string, after: string): Toml {
  const newName = (text: string) => (text.startsWith(`${before}-`) ? `${after}${text.slice(before.length)}` : text);
  const changed = { ...whole };
  if (whole["r2_buckets"] !== undefined) {
    changed["r2_buckets"] = buckets
      .parse(whole["r2_buckets"])
      .map((each) => (each.bucket_name === undefined ? each : { ...each, bucket_name: newName(each.bucket_name) }));
  }
  if (whole["workflows"] !== undefined) {
    changed["workflows"] = workflows.parse(whole["workflows"]).map((each) => ({ ...each, name: newName(each.name) }));
  }
  return changed;
}

/** The parts of a configuration that a deployment compares with the account. */
export type WorkerConfig = {
  name: string;
  /** null = the account of the login, or of CLOUDFLARE_ACCOUNT_ID. */
  accountId: string | null;
  vars: Record<string, unknown>;
  /** Whether variables of the Worker stay that `vars` does not have; wrangler deletes them otherwise. */
  keepsVars: boolean;
  /** The names of all bindings but vars. */
  bindings: readonly string[];
  /** The names of the R2 buckets, by binding. */
  buckets: Record<string, string>;
  /** Whether the gateway gets an address below workers.dev. */
  usesWorkersDev: boolean;
  /** Where all data has to be, by the variable JURISDICTION; null = anywhere, or only the Worker knows. */
  jurisdiction: Jurisdiction | null;
};

const workerToml = z.looseObject({
  name: z.string(),
  account_id: z.string().optional(),
  vars: tables.default({}),
  keep_vars: z.boolean().default(false),
  workers_dev: z.boolean().optional(),
  route: z.unknown().optional(),
  routes: z.array(z.unknown()).default([]),
  r2_buckets: z.array(z.looseObject({ binding: z.string(), bucket_name: z.string().optional() })).default([]),
});

/** Reads the parts from a parsed wrangler.toml, and from the variables of the secrets file. */
export function workerConfigOf(toml: Toml, local: Readonly<Record<string, string>> = {}): WorkerConfig {
  const read = workerToml.parse(toml);
  const hasRoutes = read.routes.length > 0 || read.route !== undefined;
  return {
    name: read.name,
    accountId: read.account_id ?? null,
    vars: read.vars,
    keepsVars: read.keep_vars,
    bindings: bindingNames(toml),
    buckets: Object.fromEntries(
      read.r2_buckets.flatMap(({ binding, bucket_name }) =>
        bucket_name === undefined ? [] : [[binding, bucket_name]],
      ),
    ),
    usesWorkersDev: read.workers_dev ?? !hasRoutes,
    // A wrong value is refused with the rest of the configuration.
    jurisdiction: jurisdictionIn(local["JURISDICTION"] ?? read.vars["JURISDICTION"]) ?? null,
  };
}

/** A binding's name is in `binding`; objects, mails and rate limits have it in `name`. */
function bindingNames(toml: Toml): string[] {
  const found: string[] = [];
  for (const [key, value] of Object.entries(toml)) {
    if (key === "vars" || key === "env") continue;
    for (const entry of entriesOf(value)) {
      const name = entry["binding"] ?? (NAMED_BY_NAME.includes(key) ? entry["name"] : undefined);
      if (typeof name === "string") found.push(name);
    }
  }
  return found;
}

const NAMED_BY_NAME = ["durable_objects", "send_email", "ratelimits"];

/** The tables in a setting: itself, the entries of a list, and those of its lists `bindings` and `producers`. */
function entriesOf(value: unknown): Toml[] {
  if (Array.isArray(value)) return value.flatMap((each) => entriesOf(each));
  const table = tables.safeParse(value);
  if (!table.success) return [];
  return [table.data, ...entriesOf(table.data["bindings"]), ...entriesOf(table.data["producers"])];
}
