/** The keys of upstreams as requests of this isolate send them: tokens that are fetched, and signatures. */
import type { Upstream } from "../providers/config/types.ts";
import { AccessTokens } from "../providers/credentials/access-tokens.ts";

/** The tokens of this isolate. */
export const accessTokens = new AccessTokens({
  fetch: (url, init) => fetch(url, init),
  now: Date.now,
  timeout: (ms) => AbortSignal.timeout(ms),
});

/** Forgets the token with which an answer was refused. */
export function forgetRefused(upstream: Upstream, { status }: Response): void {
  if (status === 401) accessTokens.forget(upstream);
}
