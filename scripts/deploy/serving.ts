/**
 * Waits until a gateway that was just deployed serves requests. A new address takes a while until it has a certificate and is known
 * everywhere, and the version before may answer meanwhile, so that every failure but one is tried again.
 */
import { messageOf } from "../readiness.ts";

/** Longest wait, ms: Cloudflare names a minute for a new subdomain, and it has taken two. */
export const SERVING_MS_MAX = 180_000;
/** Time between two tries, ms. */
const RETRY_MS = 1_000;

export type Serving = {
  url: string;
  /** null = not known here: then a request without a key must be refused for that reason, and no other. */
  adminKey: string | null;
  /** The deployed version; null = wrangler did not name it. */
  versionId: string | null;
};

export type ServingDeps = {
  /** Sends a GET request; null = no answer. */
  get(url: string, headers: Record<string, string>): Promise<{ status: number; text: string } | null>;
  now(): number;
  sleep(ms: number): Promise<void>;
};

const UNAUTHORIZED = 401;

type Tried = { state: "serves" } | { state: "waits" | "broken"; message: string };

/**
 * Why the gateway does not serve after three minutes, or has a configuration that it refuses; null once it serves. A version that
 * serves under another id is taken after the three minutes: the upload has succeeded.
 */
export async function servingTrouble(serving: Serving, deps: ServingDeps): Promise<string | null> {
  const giveUpAt = deps.now() + SERVING_MS_MAX;
  for (;;) {
    const isLast = deps.now() >= giveUpAt;
    const tried = await tryOnce(isLast ? { ...serving, versionId: null } : serving, deps);
    if (tried.state === "serves") return null;
    if (tried.state === "broken" || isLast) return tried.message;
    await deps.sleep(RETRY_MS);
  }
}

async function tryOnce({ url, adminKey, versionId }: Serving, { get }: ServingDeps): Promise<Tried> {
  const health = await get(`${url}/health`, {});
  if (health === null) return waits(`${url} does not respond`);
  const shown = /"deployment"\s*:\s*"([^"]*)"/.exec(health.text)?.[1] ?? null;
  if (health.status !== 200) return waits(`GET /health returned ${health.status}`);
  if (versionId !== null && shown !== versionId) return waits(`${url} serves another version than the deployed one`);
  const listed = await get(`${url}/runs?limit=1`, adminKey === null ? {} : { authorization: `Bearer ${adminKey}` });
  if (listed === null) return waits(`${url} does not respond`);
  if (listed.status === (adminKey === null ? UNAUTHORIZED : 200)) return { state: "serves" };
  const message = messageOf(listed.text) ?? `GET /runs returned ${listed.status}`;
  return /"code"\s*:\s*"misconfigured"/.test(listed.text) ? { state: "broken", message } : waits(message);
}

const waits = (message: string): Tried => ({ state: "waits", message });
