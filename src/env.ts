/**
 * What the environment gives the gateway: vars and secrets, parsed into one Config. Messages name variables and fields
 * and never quote a value, for any of them may hold a secret.
 */
import { z } from "zod";
import { jsonFault } from "./contract/json-fault.ts";
import type { Reason } from "./errors.ts";
import type { Upstream } from "./upstream/config.ts";
import { parseUpstreams } from "./upstream/parse.ts";

/** The vars and secrets read from the environment, unparsed. */
export interface Bindings {
  ADMIN_KEY?: unknown;
  SIGNING_KEY?: unknown;
  DEFAULT_MODEL?: unknown;
  UPSTREAMS?: unknown;
}

/** The configuration of a gateway. Holds secrets: never log or return it. */
export type Config = {
  /** null = not set: every protected route is refused. */
  adminKey: string | null;
  /** Signs run tokens; null = to be derived from `adminKey`. */
  signingKey: string | null;
  /** Model of calls that name none, as a client would name it; null = such calls are refused. */
  defaultModel: string | null;
  /** In the order listed, which is the order in which plain model names are matched. */
  upstreams: readonly Upstream[];
};

/** A parsed configuration, or the first thing wrong with it. */
export type ParsedConfig = { ok: true; config: Config } | { ok: false; reason: Reason };

/** Text where an empty value counts as not set, as in an emptied line of `.dev.vars`. */
const optionalText = z.preprocess((value) => (value === "" ? undefined : value), z.string().nullish());

/** Parses the environment's vars and secrets. A failure is `misconfigured` and names the variable and the field. */
export function parseConfig(vars: Record<string, unknown>): ParsedConfig {
  const texts: Record<"ADMIN_KEY" | "SIGNING_KEY" | "DEFAULT_MODEL", string | null> = {
    ADMIN_KEY: null,
    SIGNING_KEY: null,
    DEFAULT_MODEL: null,
  };
  for (const name of ["ADMIN_KEY", "SIGNING_KEY", "DEFAULT_MODEL"] as const) {
    const text = optionalText.safeParse(vars[name]);
    if (!text.success) return misconfigured(name, "must be text");
    texts[name] = text.data ?? null;
  }
  const listed = upstreamsOf(vars["UPSTREAMS"]);
  if (!listed.ok) return misconfigured("UPSTREAMS", listed.message);
  const upstreams = parseUpstreams(listed.value, vars);
  if (!upstreams.ok) return misconfigured(upstreams.path, upstreams.message);
  return {
    ok: true,
    config: {
      adminKey: texts.ADMIN_KEY,
      signingKey: texts.SIGNING_KEY,
      defaultModel: texts.DEFAULT_MODEL,
      upstreams: upstreams.upstreams,
    },
  };
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

/** UPSTREAMS is an object in wrangler.toml, and the same as JSON text where it comes from a secret or an env file. */
function upstreamsOf(value: unknown): { ok: true; value: unknown } | { ok: false; message: string } {
  if (typeof value !== "string") return { ok: true, value };
  try {
    return { ok: true, value: JSON.parse(value) };
  } catch {
    return { ok: false, message: jsonFault(value) };
  }
}

function misconfigured(variable: string, message: string): ParsedConfig {
  return { ok: false, reason: { reason: "misconfigured", variable, message } };
}
