/** Authenticates requests by the operator's key or a run token, and sets the principal for handlers. */
import type { Context } from "hono";
import type { AppEnv, Keys, Principal } from "../context.ts";
import type { Holder, Route } from "../../contract/routes/record.ts";
import type { Config } from "../../env.ts";
import { configOf } from "../../env.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { credentialOf } from "./credential.ts";
import { credentialsOf } from "./credentials.ts";
import { holderOf, makeKeys } from "./keys.ts";
import { verifyRunToken } from "./token.ts";
import { TOKEN_PREFIX, WORKER_TOKEN_PREFIX } from "./token-prefix.ts";
import { verifyWorkerToken } from "./worker-token.ts";

/** Names the run that an operator's request is about. */
const RUN_HEADER = "x-fanout-run";

/** @param now Time, epoch ms, at which tokens must not have expired. */
export async function authenticate(c: Context<AppEnv>, now: number): Promise<void> {
  const parsed = configOf(c.env);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const { config } = parsed;
  const keys = known.get(config) ?? (await keysOf(config));
  c.set("config", config);
  c.set("keys", keys);
  c.set("principal", await principalOf(requireCredential(c), keys, { now, route: c.get("route"), path: c.req.path }));
}

/** Refuses run tokens on a route that the table does not open for them. */
export function refuseRuns(c: Context<AppEnv>): void {
  if (c.get("principal").kind === "run" && !mayUse(c.get("route"), "run"))
    throw new Refusal({ reason: "forbidden", message: "a run token may not do this; use the operator's ADMIN_KEY" });
}

/** Refuses viewers where a route of theirs would change something. */
export function refuseViewers(c: Context<AppEnv>): void {
  if (c.get("principal").kind === "viewer") throw new Refusal(VIEWERS_ONLY);
}

/** Whether a request has the operator's or viewers' key, on a route that needs no credential and shows more to those. */
export async function isReader(c: Context<AppEnv>, config: Config): Promise<boolean> {
  const credential = credentialOf({ path: c.req.path, header: (name) => c.req.header(name) });
  if (credential === null || !credentialsOf(config).ok) return false;
  return (await holderOf(credential, known.get(config) ?? (await keysOf(config)))) !== null;
}

/** The run that a request acts for: the token's own, or the one that the operator names in `x-fanout-run`. */
export function requireRun(c: Context<AppEnv>): string {
  const principal = c.get("principal");
  const named = c.req.header(RUN_HEADER);
  if (principal.kind === "run") {
    if (named === undefined || named === principal.runId) return principal.runId;
    throw new Refusal({
      reason: "forbidden",
      message: `${RUN_HEADER} names a run that the run token does not belong to`,
    });
  }
  if (named !== undefined && named !== "" && named.length <= NAME_CHARS_MAX) return named;
  const message = `${RUN_HEADER}: a request with the operator's key must name its run in this header; expected a run id`;
  throw new Refusal({ reason: "invalid_request", message, param: RUN_HEADER });
}

/** The keys of configurations. Values, not promises: the runtime drops a promise that one request made and another awaits. */
const known = new WeakMap<Config, Keys>();

async function keysOf(config: Config): Promise<Keys> {
  const secrets = credentialsOf(config);
  if (!secrets.ok) throw new Refusal(secrets.reason);
  const keys = await makeKeys(secrets.credentials);
  known.set(config, keys);
  return keys;
}

function requireCredential(c: Context<AppEnv>): string {
  const credential = credentialOf({ path: c.req.path, header: (name) => c.req.header(name) });
  if (credential !== null) return credential;
  const what = c.req.header("authorization") === undefined ? "request" : "header authorization";
  const message = `the ${what} has no credential; expected \`Authorization: Bearer <run token or ADMIN_KEY>\` or \`x-api-key\``;
  throw new Refusal({ reason: "invalid_api_key", message });
}

/** `path`: as it is sent. */
type Arrived = { now: number; route: Route; path: string };

function mayUse({ auth }: Route, holder: Holder): boolean {
  return auth === null || auth.includes(holder);
}

async function principalOf(credential: string, keys: Keys, { now: nowMs, route, path }: Arrived): Promise<Principal> {
  if (credential.startsWith(WORKER_TOKEN_PREFIX)) {
    const verified = await verifyWorkerToken(keys.accepted, credential, nowMs);
    if (!verified.ok) throw new Refusal(verified.reason);
    // The path is compared as it is sent: one that is encoded is another.
    if (!mayUse(route, "worker") || path !== route.path.replace(":id", verified.runId)) throw new Refusal(WORKERS_ONLY);
    return { kind: "run", runId: verified.runId, depth: 0 };
  }
  if (credential.startsWith(TOKEN_PREFIX)) {
    const verified = await verifyRunToken(keys.accepted, credential, nowMs);
    if (!verified.ok) throw new Refusal(verified.reason);
    const { expiresAtMs: _, ...claims } = verified.claims;
    return { kind: "run", ...claims };
  }
  const kind = await holderOf(credential, keys);
  if (kind === "viewer" && !mayUse(route, "viewer")) throw new Refusal(VIEWERS_ONLY);
  if (kind !== null) return { kind };
  const message =
    "the credential is neither the operator's key (ADMIN_KEY) nor a run token of this gateway, which POST /runs returns";
  throw new Refusal({ reason: "invalid_api_key", message });
}

const VIEWERS_ONLY: Reason = {
  reason: "forbidden",
  message: "VIEW_KEY reads figures and may do nothing else; GET /docs lists its routes; use the operator's ADMIN_KEY",
};

const WORKERS_ONLY: Reason = {
  reason: "forbidden",
  message: "a worker token may only claim, keep and complete items of its own run",
};
