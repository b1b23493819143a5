/** The access tokens that an isolate holds for keys that are exchanged for tokens. They are kept in memory only, never in rows or logs. */
import type { Reason } from "../../errors.ts";
import type { StopReason } from "../../call.ts";
import { TOKEN_FETCH_MS_MAX, TOKEN_RENEWED_BEFORE_MS, TOKENS_KEPT_MAX } from "../../limits.ts";
import { serviceAccountOf } from "../config/auth.ts";
import type { Upstream } from "../config/types.ts";
import { fetchGoogleToken, type AccessToken, type FetchedToken } from "./google-token.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** An upstream whose key can be sent, or why there is none. `retryable`: whether another attempt may get one. */
export type ReadyUpstream =
  | { ok: true; upstream: Upstream }
  | { ok: false; reason: Reason; retryable: boolean; stop?: StopReason };

export type AccessTokensDeps = {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  now: () => number;
  timeout: (ms: number) => AbortSignal;
};

/** Statuses with which an endpoint for tokens says that it refuses the key: RFC 6749, 5.2. */
const REFUSED: ReadonlySet<number> = new Set([400, 401, 403]);

export class AccessTokens {
  readonly #deps: AccessTokensDeps;
  readonly #held = new BoundedMap<string, AccessToken>(TOKENS_KEPT_MAX);
  /** Fetches under way, by who waits: a request of Workers cannot await what another one has started. */
  readonly #fetching = new WeakMap<object, Map<string, Promise<FetchedToken>>>();

  constructor(deps: AccessTokensDeps) {
    this.#deps = deps;
  }

  /**
   * The upstream with a key that can be sent: a token in place of a service account, and any other upstream as it is. `owner`: the
   * object or request that waits; all its calls wait for one fetch.
   */
  async ready(upstream: Upstream, owner: object): Promise<ReadyUpstream> {
    const { auth, apiKey } = upstream;
    if (auth?.type !== "google" || apiKey === null) return { ok: true, upstream };
    const name = `${auth.scope} ${apiKey}`;
    const held = this.#held.get(name);
    if (held !== undefined && this.#deps.now() < held.expiresMs - TOKEN_RENEWED_BEFORE_MS) {
      return { ok: true, upstream: withToken(upstream, held.token) };
    }
    const fetched = await this.#fetchOnce(name, { apiKey, scope: auth.scope }, owner);
    if (fetched.ok) return { ok: true, upstream: withToken(upstream, fetched.value.token) };
    // A token that still lives serves while no new one comes.
    if (held !== undefined && this.#deps.now() < held.expiresMs)
      return { ok: true, upstream: withToken(upstream, held.token) };
    return failure(upstream.name, fetched);
  }

  /** Forgets the token of a key whose upstream refused it, so that the next attempt gets another one. */
  forget({ auth, apiKey }: Upstream): void {
    if (auth?.type === "google" && apiKey !== null) this.#held.delete(`${auth.scope} ${apiKey}`);
  }

  async #fetchOnce(name: string, key: { apiKey: string; scope: string }, owner: object): Promise<FetchedToken> {
    const own = this.#fetching.get(owner) ?? new Map<string, Promise<FetchedToken>>();
    this.#fetching.set(owner, own);
    const under = own.get(name);
    if (under !== undefined) return await under;
    const fetching = this.#fetch(name, key).finally(() => own.delete(name));
    own.set(name, fetching);
    return await fetching;
  }

  async #fetch(name: string, { apiKey, scope }: { apiKey: string; scope: string }): Promise<FetchedToken> {
    const account = serviceAccountOf(apiKey);
    if (account === null) return { ok: false, status: 401, message: "the key is no service account" };
    const { fetch, now, timeout } = this.#deps;
    const fetched = await fetchGoogleToken(account, scope, { fetch, now, signal: timeout(TOKEN_FETCH_MS_MAX) });
    if (fetched.ok) this.#held.set(name, fetched.value);
    return fetched;
  }
}

/** The upstream as its requests with a token see it. */
function withToken(upstream: Upstream, token: string): Upstream {
  const { keys: _, ...single } = upstream;
  return { ...single, apiKey: token, auth: { type: "header", header: "authorization", scheme: "Bearer" } };
}

function failure(upstream: string, { status, message: why }: FetchedToken & { ok: false }): ReadyUpstream {
  const isRefused = status !== null && REFUSED.has(status);
  const said = status === null ? why : `status ${status}: ${why}`;
  const message = isRefused
    ? `the token endpoint refused the service account of ${upstream} (${said}): check its key`
    : `no access token for ${upstream} (${said})`;
  const reason: Reason = { reason: "upstream_error", upstream, status, message, retryable: !isRefused };
  return { ok: false, reason, retryable: !isRefused, ...(isRefused ? { stop: "invalid_key" } : {}) };
}
