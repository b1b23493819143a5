/**
 * Decides what a deployment uploads, or why it must not happen. Pure: it gets what the checkout has, what the Worker has, and
 * fresh keys. wrangler keeps secrets of the Worker that are not uploaded, replaces those that are, and deletes all other bindings
 * that the checkout lacks. Nobody can read a secret back, so a deployment that would lose one stops.
 */
import { DERIVED_KEY, credentialsOf } from "../../src/http/auth/credentials.ts";
import { BUILT_IN_MODEL, BUILT_IN_UPSTREAMS, VARIABLES, parseConfig } from "../../src/env.ts";
import { toWire } from "../../src/errors.ts";
import { SECRET_CHARS_MIN } from "../../src/limits.ts";
import { splitVariableOf } from "../../src/providers/config/parts.ts";
import { AI_BINDING } from "../../src/providers/kinds/workers-ai.ts";
import type { RemoteBinding, RemoteWorker } from "./account.ts";
import type { DeployOptions } from "./options.ts";
import type { WorkerConfig } from "./worker-config.ts";
import { isUpstreams, workersAiOf } from "./workers-ai.ts";

/** Largest value of a variable or secret on Cloudflare, documented as 5 KB. */
export const VARIABLE_BYTES_MAX = 5 * 1024;
/** Variables and secrets of one Worker, documented. */
export const VARIABLES_MAX_FREE = 64;
export const VARIABLES_MAX_PAID = 128;

export type PlanInput = {
  options: DeployOptions;
  config: WorkerConfig;
  /** The variables of the secrets file, without empty ones. */
  local: Record<string, string>;
  /** The name of that file, for messages. */
  secretsFile: string;
  /** null = there is no Worker of this name. */
  worker: RemoteWorker | null;
  /** A new random key, at each call. */
  freshKey: () => string;
};

export type Plan = {
  /** What is uploaded as secrets. */
  secrets: Record<string, string>;
  /** New keys and upstreams, to be written to the secrets file before the upload. */
  written: Record<string, string>;
  /** Whether the Worker has the binding of Workers AI. */
  bindsWorkersAi: boolean;
  /** Secrets of the Worker that stay as they are, which the secrets file lacks. */
  kept: readonly string[];
  /** Sentences for the operator. */
  notes: readonly string[];
  /** The variables as the Worker will have them, with stand-ins for its own secrets, and without what depends on unknown ones. */
  known: Readonly<Record<string, unknown>>;
};

export type Planned = { ok: true; plan: Plan } | { ok: false; message: string };

/** Decides what is uploaded. A failure says in one sentence what would be lost or refused, and what to do. */
export function planDeployment(given: PlanInput): Planned {
  const ai = workersAiOf(given);
  if (!ai.ok) return ai;
  const bindings = [...given.config.bindings, ...(ai.binds ? [AI_BINDING] : [])];
  const local = { ...given.local, ...ai.variables };
  const input = { ...given, config: { ...given.config, bindings }, local };
  const { worker, secretsFile } = input;
  const problem = shadowedBindings(input) ?? replacedSecrets(input) ?? lostSettings(input) ?? staleParts(input);
  if (problem !== null) return { ok: false, message: problem };
  const { newKeys, withheld, notes } = keysOf(input);
  const emptied = Object.fromEntries(otherParts(input).map((name) => [name, "{}"]));
  const secrets = { ...local, ...emptied, ...newKeys };
  for (const name of withheld) delete secrets[name];
  const kept = (worker?.secrets ?? []).filter((name) => !(name in secrets));
  const wrong = sizeProblem(input, secrets) ?? countProblem(input, secrets) ?? configProblem(input, secrets);
  if (wrong !== null) return { ok: false, message: wrong };
  const names = kept.length === 0 ? [] : [`Kept as they are, because ${secretsFile} has none: ${kept.join(", ")}.`];
  const simulated = hasUpstreams(input)
    ? []
    : [
        `UPSTREAMS is not set, so the gateway serves only ${BUILT_IN_MODEL} and the other simulated models. Add your providers to ${secretsFile}, or answer with Cloudflare's own models without any key: npm run deploy -- --workers-ai`,
      ];
  return {
    ok: true,
    plan: {
      secrets,
      written: { ...newKeys, ...ai.variables },
      bindsWorkersAi: ai.binds,
      kept,
      notes: [...notes, ...names, ...ai.notes, ...simulated],
      known: knownVars(input, secrets),
    },
  };
}

/** Whether any upstream is configured: here, or in a secret of the Worker. */
export function hasUpstreams({ config, local, worker }: Pick<PlanInput, "config" | "local" | "worker">): boolean {
  return [...Object.keys({ ...config.vars, ...local }), ...(worker?.secrets ?? [])].some(isUpstreams);
}

/** A secret replaces a binding of the same name. */
function shadowedBindings({ config, local, secretsFile }: PlanInput): string | null {
  const shadowed = config.bindings.filter((name) => name in local);
  return shadowed.length === 0
    ? null
    : `${secretsFile} has variables with the names of bindings in wrangler.toml: ${shadowed.join(", ")}. Give them other names.`;
}

/** A var of wrangler.toml replaces a secret of the same name, unless the secret is uploaded again. */
function replacedSecrets({ config, local, worker, secretsFile }: PlanInput): string | null {
  const replaced = (worker?.secrets ?? []).filter((name) => name in config.vars && !(name in local));
  if (replaced.length === 0) return null;
  return `[vars] of wrangler.toml would replace secrets of the Worker ${config.name}: ${replaced.join(", ")}. Remove them from [vars], or write their values to ${secretsFile}.`;
}

/** Bindings that the deployment would delete, or bind to another bucket. */
function lostSettings({ options, config, local, worker, secretsFile }: PlanInput): string | null {
  const isKept = ({ name, ...rest }: RemoteBinding): boolean => {
    if (options.drop.includes(name) || name in local || name in config.vars) return true;
    if (config.keepsVars && (rest.type === "plain_text" || rest.type === "json")) return true;
    if (HARMLESS_TYPES.includes(rest.type) || isBuiltIn({ name, ...rest })) return true;
    if (rest.type !== "r2_bucket") return config.bindings.includes(name);
    return options.hasNoR2 || config.buckets[name] === rest["bucket_name"];
  };
  const lost = (worker?.bindings ?? []).filter((each) => !isKept(each)).map(({ name }) => name);
  if (lost.length === 0) return null;
  return `The Worker ${config.name} has settings that this checkout lacks or has differently, and a deployment would lose them: ${lost.join(", ")}. Write variables to ${secretsFile} and other bindings to wrangler.toml, or give them up with --drop ${lost.join(",")}`;
}

/** Bindings without a setting or data of their own. */
const HARMLESS_TYPES = ["version_metadata", "inherit"];

/** Vars of a gateway that nobody configured equal what the code serves without them. */
function isBuiltIn(binding: RemoteBinding): boolean {
  const { name, type } = binding;
  if (name === "DEFAULT_MODEL") return type === "plain_text" && binding["text"] === BUILT_IN_MODEL;
  return (
    name === "UPSTREAMS" && type === "json" && JSON.stringify(binding["json"]) === JSON.stringify(BUILT_IN_UPSTREAMS)
  );
}

/** Parts of a split variable that only the Worker has, while the checkout has others: they would be merged with these. */
function otherParts({ config, local, worker }: PlanInput): string[] {
  const here = new Set(Object.keys({ ...config.vars, ...local }).flatMap((name) => splitVariableOf(name) ?? []));
  return (worker?.secrets ?? []).filter((name) => {
    const variable = splitVariableOf(name);
    return variable !== null && here.has(variable) && !(name in local);
  });
}

function staleParts(input: PlanInput): string | null {
  const stale = otherParts(input).filter((name) => !input.options.drop.includes(name));
  if (stale.length === 0) return null;
  return `The Worker ${input.config.name} has ${stale.join(", ")}, which ${input.secretsFile} lacks, and all parts of a variable are merged. Write them to ${input.secretsFile}, or empty them with --drop ${stale.join(",")}`;
}

/**
 * A key is made for a Worker that has none, or if the operator asks for it. A Worker without a SIGNING_KEY signs with a key that it
 * derives from ADMIN_KEY: a SIGNING_KEY would invalidate the tokens of its runs, so it gets one only if it is asked for.
 */
function keysOf({ options, local, worker, secretsFile, freshKey }: PlanInput): Keys {
  if (options.isBuild)
    return { newKeys: {}, withheld: [], notes: hasAdminKey({ local, worker }) ? [] : [NO_ADMIN_KEY] };
  const isSet = (name: string) => name in local || worker?.secrets.includes(name) === true;
  const isFirst = worker === null || !worker.secrets.includes("ADMIN_KEY");
  const isDerived = !isFirst && !worker.secrets.includes("SIGNING_KEY");
  const keys: Keys = { newKeys: {}, withheld: [], notes: [] };
  if (options.makesAdminKey || !isSet("ADMIN_KEY")) keys.newKeys["ADMIN_KEY"] = freshKey();
  if (options.makesAdminKey && isDerived && !options.makesSigningKey) {
    keys.notes.push(
      "The run tokens of the Worker are signed with a key derived from the old ADMIN_KEY: they are invalid now.",
    );
  }
  if (options.makesSigningKey) {
    keys.newKeys["SIGNING_KEY"] = freshKey();
    const previous = isDerived ? DERIVED_KEY : (local["SIGNING_KEY"] ?? "");
    const isUsable = isDerived || previous.length >= SECRET_CHARS_MIN;
    if (isUsable) keys.newKeys["SIGNING_KEY_PREVIOUS"] = previous;
    else if (!isFirst)
      keys.notes.push(
        `${secretsFile} has no old SIGNING_KEY, or a short one: the run tokens of the Worker are invalid now.`,
      );
  } else if (isFirst && !isSet("SIGNING_KEY")) {
    keys.newKeys["SIGNING_KEY"] = freshKey();
  } else if (isDerived && "SIGNING_KEY" in local && local["SIGNING_KEY_PREVIOUS"] !== DERIVED_KEY) {
    keys.withheld.push("SIGNING_KEY");
    keys.notes.push(
      `SIGNING_KEY of ${secretsFile} is not uploaded: the Worker signs with a key derived from its ADMIN_KEY, and its run tokens would become invalid. --new-signing-key replaces that key and accepts the tokens.`,
    );
  }
  return keys;
}

/** Whether the Worker has a key of the operator's, or gets one that is not made here. */
export function hasAdminKey({ local, worker }: Pick<PlanInput, "local" | "worker">): boolean {
  return "ADMIN_KEY" in local || worker?.secrets.includes("ADMIN_KEY") === true;
}

/** A key that is made in a build would be lost with it. */
const NO_ADMIN_KEY = `The Worker has no ADMIN_KEY yet, so it refuses whatever needs one. Set it in the dashboard, below Settings, Variables and Secrets: at least ${SECRET_CHARS_MIN} random characters.`;

type Keys = { newKeys: Record<string, string>; withheld: string[]; notes: string[] };

function sizeProblem({ config, secretsFile }: PlanInput, secrets: Record<string, string>): string | null {
  for (const [name, value] of Object.entries({ ...config.vars, ...secrets })) {
    const bytes = Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
    if (bytes <= VARIABLE_BYTES_MAX) continue;
    const variable = splitVariableOf(name);
    const advice =
      variable === null
        ? "Shorten it."
        : `Split it into ${variable}_1, ${variable}_2 …: docs/configuration.md says how.`;
    const place = name in secrets ? secretsFile : "wrangler.toml";
    return `${name} in ${place} has ${bytes} bytes, and a variable on Cloudflare at most ${VARIABLE_BYTES_MAX}. ${advice}`;
  }
  return null;
}

function countProblem({ options, config, worker }: PlanInput, secrets: Record<string, string>): string | null {
  const names = new Set([...(worker?.secrets ?? []), ...Object.keys(config.vars), ...Object.keys(secrets)]);
  const max = options.isFree ? VARIABLES_MAX_FREE : VARIABLES_MAX_PAID;
  if (names.size <= max) return null;
  return `The Worker ${config.name} would have ${names.size} variables and secrets, and may have ${max}. Delete secrets that it does not need: npx wrangler secret delete NAME --name ${config.name}`;
}

/**
 * What can be checked before the upload. The values of the Worker's own secrets are unknown: keys among them get a stand-in, and
 * what depends on other unknown variables is not checked.
 */
function knownVars({ config, worker }: PlanInput, secrets: Record<string, string>): Record<string, unknown> {
  const vars: Record<string, unknown> = { ...config.vars, ...secrets };
  const unknown = (worker?.secrets ?? []).filter((name) => !(name in vars));
  const variables: readonly string[] = VARIABLES;
  for (const name of unknown) {
    if (SECRET_VARIABLES.includes(name) || !variables.includes(name))
      vars[name] = `unknown value of ${name}`.padEnd(64, ".");
  }
  const split = new Set(unknown.map(splitVariableOf));
  const depends = split.has("UPSTREAMS")
    ? ["UPSTREAMS", "ROUTES", "PANEL"]
    : split.has("ROUTES")
      ? ["ROUTES", "PANEL"]
      : [];
  const checked = Object.entries(vars).filter(([name]) => {
    const variable = splitVariableOf(name);
    return variable === null || (!depends.includes(variable) && !split.has(variable));
  });
  return Object.fromEntries(checked);
}

/** What the gateway would refuse. */
function configProblem(input: PlanInput, secrets: Record<string, string>): string | null {
  const parsed = parseConfig(knownVars(input, secrets));
  const isKeyless = input.options.isBuild && !hasAdminKey(input);
  const usable = parsed.ok && !isKeyless ? credentialsOf(parsed.config) : parsed;
  return usable.ok ? null : toWire(usable.reason).error.message;
}

const SECRET_VARIABLES: readonly string[] = [
  "ADMIN_KEY",
  "SIGNING_KEY",
  "SIGNING_KEY_PREVIOUS",
  "VIEW_KEY",
  "WEBHOOK_SECRET",
];
