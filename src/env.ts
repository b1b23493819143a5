/**
 * What the environment gives the gateway: vars and secrets, parsed into one Config. Messages name variables and fields
 * and never quote a value, because any of them may contain a secret.
 */
import * as z from "zod";
import { limitNanoUsd } from "./run/money/money.ts";
import type { Reason } from "./errors.ts";
import { JURISDICTIONS, jurisdictionIn, type Jurisdiction } from "./jurisdiction.ts";
import { BUDGET_USD_MAX, WAITING_FETCHES_DEFAULT, WAITING_FETCHES_MAX } from "./limits.ts";
import { parseOtlp, type OtlpTarget } from "./log/otlp/settings.ts";
import { parseToolHosts, type ToolHost } from "./tools/hosts.ts";
import type { Upstream } from "./providers/config/types.ts";
import { isRemote } from "./providers/kinds/table.ts";
import { parseUpstreams } from "./providers/upstreams.ts";
import { parsePanel, type Panel } from "./providers/panel.ts";
import { combinedParts } from "./providers/config/parts.ts";
import { parseRoutes, type Route } from "./providers/config/routes.ts";
import { atFirstUse } from "./at-first-use.ts";

/** The names of the vars and secrets that the gateway reads; secrets that these refer to have names of the operator's. */
export const VARIABLES = [
  "ADMIN_KEY",
  "SIGNING_KEY",
  "SIGNING_KEY_PREVIOUS",
  "VIEW_KEY",
  "DEFAULT_MODEL",
  "UPSTREAMS",
  "ROUTES",
  "PANEL",
  "DEFAULT_BUDGET_USD",
  "MAX_BUDGET_USD",
  "ROOT_BUDGET_USD_PER_DAY",
  "CORS_ORIGINS",
  "TOOL_HOSTS",
  "WEBHOOK_URL",
  "WEBHOOK_SECRET",
  "WAITING_FETCHES_MAX",
  "ASYNC_EXECUTOR",
  "PROBE",
  "SERVICE_BINDINGS",
  "JURISDICTION",
  "LEASED_CREDIT",
  "CONNECT_FIRST",
  "OTLP_ENDPOINT",
  "OTLP_HEADERS",
  "OTLP_PROTOCOL",
  "OTLP_CONTENT",
] as const;

/**
 * What a gateway without UPSTREAMS serves: a simulated provider that needs no key, priced like a small model. It is a default in
 * code and no `[vars]` of wrangler.toml: a deployment would replace the secrets of the same names by them.
 */
export const BUILT_IN_UPSTREAMS = { sim: { kind: "simulated" } } as const;
export const BUILT_IN_MODEL = "sim/echo";

/** The vars and secrets read from the environment, unparsed, and the version of the Worker as Cloudflare names it. */
export type Bindings = Partial<Record<(typeof VARIABLES)[number], unknown>> & {
  CF_VERSION_METADATA?: { id: string };
  /** Answers with the free bytes of the disk: of a gateway on its own machine only, see scripts/local/disk.ts. */
  DISK?: { fetch(url: string, init: { signal: AbortSignal }): Promise<Response> };
};

/** The operator's rules for budgets of root runs, in nano-USD; null = none. */
export type BudgetRules = {
  /** Limit of a run whose request names none. */
  defaultNanoUsd: number | null;
  /** Largest limit that a request may name. */
  maxNanoUsd: number | null;
  /** What all runs opened on one UTC day may spend together. */
  rootNanoUsdPerDay: number | null;
};

/** The configuration of a gateway. Holds secrets: never log or return it. */
export type Config = {
  /** null = not set: every protected route is refused. */
  adminKey: string | null;
  /** Signs run tokens; null = to be derived from `adminKey`. */
  signingKey: string | null;
  /** Signed run tokens before `signingKey`, and those are still accepted; null = none are. */
  signingKeyPrevious: string | null;
  /** The credential that reads figures and no texts; null = there is none. */
  viewKey: string | null;
  /** Model of calls that name none, as a client would name it; null = such calls are refused. */
  defaultModel: string | null;
  /** In the order listed, which is the order in which plain model names are matched. */
  upstreams: readonly Upstream[];
  /** Model names that stand for several targets. */
  routes: readonly Route[];
  /** The models behind `fanout/panel`; null = there is none. */
  panel: Panel | null;
  budgets: BudgetRules;
  /** Origins whose pages may call the gateway from a browser; `*` alone means any; none if it is not set. */
  corsOrigins: readonly string[];
  /** Hosts that tools may have, which may then be private; none = any public host. */
  toolHosts: readonly ToolHost[];
  /** Fetches of one object or request that may wait for response headers at once. */
  waitingFetchesMax: number;
  /** Whether Workflow instances execute groups without a client, where they are bound; else lanes do. */
  mayUseWorkflows: boolean;
  /** Whether the operator may measure the platform by `GET /_probe/:n`. */
  probes: boolean;
  /** Whether Workers of the account may open runs over a service binding. */
  serviceBindings: boolean;
  /** Where all objects and files are kept; null = wherever Cloudflare keeps them. */
  jurisdiction: Jurisdiction | null;
  /** Whether instances of the gateway may start single calls by themselves, inside credit. */
  leasedCredit: boolean;
  /** The URL that is notified of every batch's end, and the secret that signs the notification; null = none. */
  webhook: { url: string; secret: string } | null;
  /** The collector that receives traces of all runs; null = they are not exported. */
  otlp: OtlpTarget | null;
};

/** A parsed configuration, or the first thing wrong with it. */
export type ParsedConfig = { ok: true; config: Config } | { ok: false; reason: Reason };

/** Text where an empty value counts as not set, as in an emptied line of `.dev.vars`. */
const optionalText = z.preprocess((value) => (value === "" ? undefined : value), z.string().nullish());

const TEXT_VARS = [
  "ADMIN_KEY",
  "SIGNING_KEY",
  "SIGNING_KEY_PREVIOUS",
  "VIEW_KEY",
  "DEFAULT_MODEL",
  "WEBHOOK_URL",
  "WEBHOOK_SECRET",
  "TOOL_HOSTS",
  "OTLP_ENDPOINT",
  "OTLP_HEADERS",
  "OTLP_PROTOCOL",
] as const;
type Texts = Record<(typeof TEXT_VARS)[number], string | null>;
const BUDGET_VARS = ["DEFAULT_BUDGET_USD", "MAX_BUDGET_USD", "ROOT_BUDGET_USD_PER_DAY"] as const;
/** USD as a number, or as text where it comes from an env file. Blanks are no number: they would count as zero. */
const optionalUsd = z.preprocess(
  (value) => (value === "" || value == null ? undefined : typeof value === "string" ? numberIn(value) : value),
  z.number().min(0).max(BUDGET_USD_MAX).optional(),
);

function numberIn(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** A count, or its digits where it comes from an env file. */
const switchText = z.preprocess((value) => (value === "" ? undefined : value), z.enum(["on", "off"]).default("on"));
const waitingFetches = atFirstUse(() =>
  z.preprocess(
    (value) => (value === "" || value == null ? undefined : typeof value === "string" ? numberIn(value) : value),
    z.number().int().min(1).max(WAITING_FETCHES_MAX).default(WAITING_FETCHES_DEFAULT),
  ),
);

/** Unset = Workflow instances where they are bound: they cost a fraction of lanes. */
const asyncExecutor = atFirstUse(() =>
  z.preprocess((value) => (value === "" || value == null ? "workflow" : value), z.enum(["workflow", "lanes"])),
);

const oneOrZero = z.preprocess(
  (value) => (value === "" || value == null ? 0 : typeof value === "string" ? numberIn(value) : value),
  z.union([z.literal(0), z.literal(1)]),
);

/** Parses the environment's vars and secrets. A failure is `misconfigured` and names the variable and the field. */
export function parseConfig(vars: Record<string, unknown>): ParsedConfig {
  const texts = textsIn(vars);
  if ("reason" in texts) return { ok: false, reason: texts };
  const budgets = budgetsIn(vars);
  if ("reason" in budgets) return { ok: false, reason: budgets };
  const corsOrigins = originsIn(vars["CORS_ORIGINS"]);
  if (corsOrigins === null) {
    return misconfigured("CORS_ORIGINS", "must be * or origins such as https://app.example, separated by commas");
  }
  const toolHosts = parseToolHosts(texts.TOOL_HOSTS ?? "");
  if (toolHosts === null) {
    return misconfigured("TOOL_HOSTS", "must be hosts such as tools.example.com:8080, separated by commas");
  }
  const receivers = receiversIn(texts, vars);
  if ("reason" in receivers) return { ok: false, reason: receivers };
  const waiting = waitingFetches().safeParse(vars["WAITING_FETCHES_MAX"]);
  if (!waiting.success) {
    return misconfigured("WAITING_FETCHES_MAX", `must be a whole number from 1 to ${WAITING_FETCHES_MAX}`);
  }
  const executor = asyncExecutor().safeParse(vars["ASYNC_EXECUTOR"]);
  if (!executor.success) return misconfigured("ASYNC_EXECUTOR", "must be workflow or lanes");
  const probe = oneOrZero.safeParse(vars["PROBE"]);
  if (!probe.success) return misconfigured("PROBE", "must be 1 or 0");
  const bindings = oneOrZero.safeParse(vars["SERVICE_BINDINGS"]);
  if (!bindings.success) return misconfigured("SERVICE_BINDINGS", "must be 1 or 0");
  const jurisdiction = jurisdictionIn(vars["JURISDICTION"]);
  if (jurisdiction === undefined) return misconfigured("JURISDICTION", `must be one of ${JURISDICTIONS.join(", ")}`);
  const leased = switchText.safeParse(vars["LEASED_CREDIT"]);
  if (!leased.success) return misconfigured("LEASED_CREDIT", "must be on or off");
  const models = modelsIn(vars, { named: texts.DEFAULT_MODEL, exportsSpans: receivers.otlp !== null });
  if ("reason" in models) return { ok: false, reason: models };
  return {
    ok: true,
    config: {
      adminKey: texts.ADMIN_KEY,
      signingKey: texts.SIGNING_KEY,
      signingKeyPrevious: texts.SIGNING_KEY_PREVIOUS,
      viewKey: texts.VIEW_KEY,
      ...models,
      corsOrigins,
      toolHosts,
      waitingFetchesMax: waiting.data,
      mayUseWorkflows: executor.data === "workflow",
      probes: probe.data === 1,
      serviceBindings: bindings.data === 1,
      jurisdiction,
      leasedCredit: leased.data === "on",
      ...receivers,
      budgets,
    },
  };
}

/** The variables that are texts, null where one is not set; or which one is no text. */
function textsIn(vars: Record<string, unknown>): Texts | Reason {
  const texts: Texts = {
    ADMIN_KEY: null,
    SIGNING_KEY: null,
    SIGNING_KEY_PREVIOUS: null,
    VIEW_KEY: null,
    DEFAULT_MODEL: null,
    WEBHOOK_URL: null,
    WEBHOOK_SECRET: null,
    TOOL_HOSTS: null,
    OTLP_ENDPOINT: null,
    OTLP_HEADERS: null,
    OTLP_PROTOCOL: null,
  };
  for (const name of TEXT_VARS) {
    const text = optionalText.safeParse(vars[name]);
    if (!text.success) return wrong(name, "must be text");
    texts[name] = text.data ?? null;
  }
  return texts;
}

/**
 * The upstreams, routes and panel, or what is wrong with them. `named`: the configured default model. `exportsSpans`: whether
 * those of attempts are exported.
 */
function modelsIn(
  vars: Record<string, unknown>,
  { named, exportsSpans }: { named: string | null; exportsSpans: boolean },
): Pick<Config, "upstreams" | "defaultModel" | "routes" | "panel"> | Reason {
  const content = oneOrZero.safeParse(vars["OTLP_CONTENT"]);
  if (!content.success) return wrong("OTLP_CONTENT", "must be 1 or 0");
  const connectsFirst = oneOrZero.safeParse(vars["CONNECT_FIRST"]);
  if (!connectsFirst.success) return wrong("CONNECT_FIRST", "must be 1 or 0");
  const listed = combinedParts("UPSTREAMS", vars);
  if (!listed.ok) return wrong(listed.path, listed.message);
  const parsedUpstreams = parseUpstreams(listed.value === undefined ? BUILT_IN_UPSTREAMS : listed.value, vars);
  if (!parsedUpstreams.ok) return wrong(parsedUpstreams.path, parsedUpstreams.message);
  const upstreams = parsedUpstreams.upstreams.map((upstream): Upstream => ({
    ...upstream,
    ...(exportsSpans && upstream.traces !== undefined ? { traces: "attempt" } : {}),
    ...(exportsSpans && content.data === 1 ? { exportsContent: true } : {}),
    ...(connectsFirst.data === 1 && isReachedByNetwork(upstream) ? { connectsFirst: true } : {}),
  }));
  const routed = combinedParts("ROUTES", vars);
  if (!routed.ok) return wrong(routed.path, routed.message);
  const routes = parseRoutes(routed.value, upstreams);
  if (!routes.ok) return wrong(routes.path, routes.message);
  const defaultModel = named ?? (listed.value === undefined ? BUILT_IN_MODEL : null);
  const models = { upstreams, routes: routes.routes };
  const panelists = combinedParts("PANEL", vars);
  if (!panelists.ok) return wrong(panelists.path, panelists.message);
  const panel = parsePanel(panelists.value, models);
  return panel.ok ? { ...models, defaultModel, panel: panel.panel } : wrong(panel.path, panel.message);
}

/** Whether calls of an upstream go over the network; those of a tape may be played without it. */
function isReachedByNetwork(upstream: Upstream): boolean {
  return isRemote(upstream) && upstream.cassette === undefined;
}

/** The operator's rules for budgets, or what is wrong with one of their variables. */
function budgetsIn(vars: Record<string, unknown>): BudgetRules | Reason {
  const amounts: Record<(typeof BUDGET_VARS)[number], number | null> = {
    DEFAULT_BUDGET_USD: null,
    MAX_BUDGET_USD: null,
    ROOT_BUDGET_USD_PER_DAY: null,
  };
  for (const name of BUDGET_VARS) {
    const usd = optionalUsd.safeParse(vars[name]);
    if (!usd.success) return wrong(name, `must be an amount of USD from 0 to ${BUDGET_USD_MAX}`);
    amounts[name] = usd.data === undefined ? null : limitNanoUsd(usd.data);
  }
  return {
    defaultNanoUsd: amounts.DEFAULT_BUDGET_USD,
    maxNanoUsd: amounts.MAX_BUDGET_USD,
    rootNanoUsdPerDay: amounts.ROOT_BUDGET_USD_PER_DAY,
  };
}

/** Who receives what the gateway reports by itself, or what is wrong with one of their variables. */
function receiversIn(texts: Texts, vars: Record<string, unknown>): Pick<Config, "webhook" | "otlp"> | Reason {
  const webhook = webhookOf(texts.WEBHOOK_URL, texts.WEBHOOK_SECRET);
  if ("reason" in webhook) return webhook;
  const { OTLP_ENDPOINT: endpoint, OTLP_HEADERS: headers, OTLP_PROTOCOL: protocol } = texts;
  const otlp = parseOtlp({ endpoint, headers, protocol }, vars);
  return otlp.ok ? { webhook: webhook.target, otlp: otlp.target } : wrong(otlp.variable, otlp.message);
}

/** The webhook for batches, or what is wrong with its variables. */
function webhookOf(url: string | null, secret: string | null): { target: Config["webhook"] } | Reason {
  if (url === null) return { target: null };
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    return wrong("WEBHOOK_URL", "must be an http:// or https:// address");
  }
  return secret === null
    ? wrong("WEBHOOK_SECRET", "is missing: it signs what WEBHOOK_URL is sent")
    : { target: { url, secret } };
}

/** The origins that a text lists; null if one is invalid. A path or a trailing slash would never match a browser's. */
function originsIn(value: unknown): string[] | null {
  const text = optionalText.safeParse(value);
  if (!text.success) return null;
  const origins = (text.data ?? "").split(",").map((origin) => origin.trim());
  const named = origins.filter((origin) => origin !== "");
  const known = named.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin);
  return known || (named.length === 1 && named[0] === "*") ? named : null;
}

const parsed = new WeakMap<object, ParsedConfig>();

/** `parseConfig`, remembered per vars object: the runtime hands an isolate the same one with every request. */
export function configOf(vars: object): ParsedConfig {
  const known = parsed.get(vars);
  if (known !== undefined) return known;
  const fresh = parseConfig({ ...vars });
  parsed.set(vars, fresh);
  return fresh;
}

function misconfigured(variable: string, message: string): ParsedConfig {
  return { ok: false, reason: wrong(variable, message) };
}

function wrong(variable: string, message: string): Reason {
  return { reason: "misconfigured", variable, message };
}
